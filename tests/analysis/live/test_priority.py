"""A process that watches a run lowers its priority with all its threads and children."""

import subprocess
import sys

from analysis.live.priority import NICE

SESSION = """
import os, subprocess, sys, threading
from analysis.live.priority import lower_priority

def nices():
    tasks = f"/proc/{os.getpid()}/task"
    return [os.getpriority(os.PRIO_PROCESS, thread) for thread in [*map(int, os.listdir(tasks)), child.pid]]

go = threading.Event()
threading.Thread(target=go.wait).start()
child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
lower_priority()
print(*nices())
go.set()
child.communicate(b"\\n")
"""


def test_all_threads_of_the_session_lower_priority() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SESSION], capture_output=True, text=True, start_new_session=True, check=True
    )
    found = [int(nice) for nice in ran.stdout.split()]
    assert len(found) == 3
    assert min(found) >= NICE
