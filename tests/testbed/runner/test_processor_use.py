"""Processor time of a process and its children."""

import os
import subprocess
import sys

from testbed.runner.processor_use import used_s

BURN = "import time\nwhile time.process_time() < 0.3: pass"
BURN_AND_STAY = f"{BURN}\nprint(flush=True)\nimport sys; sys.stdin.read()"


def test_processor_time_of_children_counts_alive_or_reaped():
    parent = f"""
import subprocess, sys
subprocess.run([sys.executable, "-c", {BURN!r}], check=True)
child = subprocess.Popen([sys.executable, "-c", {BURN_AND_STAY!r}], stdin=-1, stdout=-1)
child.stdout.readline()
print(flush=True)
sys.stdin.read()
child.communicate()
"""
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        found = used_s([process.pid])
        process.communicate()
    assert found[process.pid] >= 0.55  # of two children; ticks of a hundredth of a second


def test_ended_processes_are_left_out():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert set(used_s([gone.pid, os.getpid()])) == {os.getpid()}
