"""A program that runs on a machine as root: ends processes of earlier runs, and removes shipped files.

One line of JSON on standard input gives `folder` (the machine's, of the inventory), `shipped` (runs whose
files are all on the controller) and `code` (the archive that stays). The answer, one line of JSON, has the
runs' names by result: `ended` (its supervisor had no controller), `removed`, `in_use` and `kept` (not
shipped; with its bytes), and `code` (the number of removed archives).

A run whose controller is connected is not touched. Files outside the folder are not touched. If another user
could change a folder (`testbed.machines.software.trusted_folders`), or if a file cannot be removed, the exit
code is 1 with the reason on standard error.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from testbed.machines.run_folders import HELD, IN_USE, agents, run_folders, size_bytes, state, supervisor
from testbed.machines.software.trusted_folders import require_trusted
from testbed.machines.ssh.time_limit import limited

PATIENCE_S = 60.0
END_TIMEOUT_S = 5.0
LOOK_S = 0.02
UNPACKING_S = 3600.0  # age from which a folder counts as abandoned rather than as being unpacked


def main(patience_s: float = PATIENCE_S) -> None:
    """Answer one request."""
    with limited(patience_s):
        request = json.loads(sys.stdin.readline())
    sys.stdout.write(json.dumps(clear(Path(request["folder"]), request["shipped"], request["code"])) + "\n")


def clear(folder: Path, shipped: list[str], code: str) -> dict[str, Any]:
    """Clean up; returns the answer. Raises OSError."""
    for place in (folder / "runs", folder / "code"):
        if os.path.lexists(str(place)):
            require_trusted(place)
    done: dict[str, Any] = {"ended": [], "removed": [], "in_use": [], "kept": {}, "code": 0}
    for run in run_folders(folder):
        now = state(run)
        if now == IN_USE:
            done["in_use"].append(run.name)
            continue
        if now == HELD and end(run):
            done["ended"].append(run.name)
        if run.name in shipped:
            shutil.rmtree(run)
            done["removed"].append(run.name)
        else:
            done["kept"][run.name] = size_bytes(run)
    if not done["in_use"]:
        done["code"] = remove_code(folder / "code", code)
    return done


def end(run: Path) -> bool:
    """End a run's supervisor, and with it its sandbox; then processes that forwarded bytes to it and hang.

    Process handles are opened before a process is checked again, so that it cannot be another process.
    """
    pid = supervisor(run)
    if pid is None:
        return False
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return False
    try:
        for number in (signal.SIGTERM, signal.SIGKILL):
            if supervisor(run) != pid:
                break
            signal.pidfd_send_signal(handle, number)
            wait(lambda: supervisor(run) != pid)
    except ProcessLookupError:
        pass  # it has ended already
    finally:
        os.close(handle)
    for client in agents(run):
        with suppress(ProcessLookupError):
            handle = os.pidfd_open(client)
            if client in agents(run):
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            os.close(handle)
    return True


def wait(done: Any) -> None:
    """Wait until `done()` is true, at most `END_TIMEOUT_S`."""
    end_s = time.monotonic() + END_TIMEOUT_S
    while not done() and time.monotonic() < end_s:
        time.sleep(LOOK_S)


def remove_code(code: Path, kept: str) -> int:
    """Remove all archives but one; returns the number of removed archives."""
    count = 0
    for each in sorted(code.iterdir()) if code.is_dir() else []:
        unpacking = ".part." in each.name and time.time() - each.stat().st_mtime < UNPACKING_S
        if each.name != kept and not unpacking:
            shutil.rmtree(each)
            count += 1
    return count


if __name__ == "__main__":
    try:
        main(*map(float, sys.argv[1:]))
    except OSError as error:
        sys.exit(str(error))
