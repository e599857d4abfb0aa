"""`python -m testbed.machines.agent start|attach FOLDER`: the program that a controller starts through SSH.

`start` reads one line from standard input, {"run": the content of run.json, "lease_s": seconds}, creates the
run's folder, and starts a detached supervisor, unless there is one already. Then, like `attach`, it forwards
bytes between its standard streams and the supervisor's socket until either ends, or the controller does not
begin or does not read for `PATIENCE_S`. Exit codes: 0 either end closed, and another `attach` may continue; 3
there is no supervisor, or the folder cannot be created.
"""

import json
import os
import select
import signal
import socket
import sys
from pathlib import Path
from typing import Any

from testbed.machines import run_folders
from testbed.machines.ssh.time_limit import limited

NO_SUPERVISOR = 3
PATIENCE_S = 60.0
STARTED = b"."
PIECE_BYTES = 1 << 16


def main(arguments: list[str]) -> int:
    """Start or attach; returns the exit code."""
    command, folder = arguments[0], Path(arguments[1])
    if len(os.fsencode(folder / run_folders.SOCKET)) > run_folders.SOCKET_PATH_BYTES_MAX:
        return _fail(f"the path {folder} is too long for a socket: choose a shorter `folder:`")
    rest = b""
    if command == "start":
        with limited(PATIENCE_S):
            line, rest = _first_line()
        if not (folder / "run.json").exists():
            problem = _start(folder, json.loads(line))
            if problem:
                return _fail(problem)
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect(str(folder / run_folders.SOCKET))
    except OSError as error:
        return _fail(f"no supervisor at {folder}: {error.strerror}")
    _pass_bytes(connection, rest)
    return 0


def _start(folder: Path, given: dict[str, Any]) -> str:
    """Start a detached supervisor; returns the error, empty on success."""
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.close(reading)
        os.setsid()
        if os.fork() != 0:
            os._exit(0)
        _be_supervisor(folder, given, writing)
    os.close(writing)
    os.wait()
    with os.fdopen(reading, "rb") as stream:
        said = stream.read()
    return "" if said == STARTED else said.decode(errors="replace") or "the supervisor died at its start"


def _be_supervisor(folder: Path, given: dict[str, Any], writing: int) -> None:
    """Become the supervisor; never returns."""
    code = 1
    try:
        # Imported here because `attach` does not need these modules.
        from experiments.records.json_files import write_json  # noqa: PLC0415
        from experiments.records.rundir import RunDirectory  # noqa: PLC0415
        from testbed.machines.agent.supervisor import Supervisor, listen, note_process  # noqa: PLC0415
        from testbed.tunnel import Tunnel  # noqa: PLC0415

        run, content = RunDirectory(folder), given["run"]
        try:
            run.make()
            folder.chmod(0o700)
            _detach_from_session(folder / run_folders.LOG)
            note_process(folder, os.getpid())
            listener = listen(folder)
            write_json(run.run_json, content)
        except OSError as error:
            os.write(writing, f"cannot write {error.filename or folder}: {error.strerror}".encode())
            os._exit(1)
        os.write(writing, STARTED)
        os.close(writing)
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            tunnels = [Tunnel(**tunnel) for tunnel in content["assignment"]["tunnels"]]
            Supervisor(run, tunnels, given["lease_s"]).serve(listener)
        finally:
            for name in (run_folders.SOCKET, run_folders.STATE):
                (folder / name).unlink(missing_ok=True)
        code = 0
    except Exception:  # noqa: BLE001 - the last handler before the process ends; the log has the traceback
        import traceback  # noqa: PLC0415

        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


def _detach_from_session(log: Path) -> None:
    """Redirect the standard streams, so that the SSH session can end."""
    nothing = os.open(os.devnull, os.O_RDWR)
    output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for source, target in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(source, target)
    os.chdir("/")


def _first_line() -> tuple[bytes, bytes]:
    """Read the first line of standard input; returns it and the bytes after it, for the supervisor."""
    data = b""
    while b"\n" not in data and (piece := os.read(0, PIECE_BYTES)):
        data += piece
    line, _, rest = data.partition(b"\n")
    return line, rest


def _pass_bytes(connection: socket.socket, first: bytes) -> None:
    """Forward bytes both ways, until either side ends."""
    connection.sendall(first)
    both: list[int | socket.socket] = [0, connection]
    while True:
        ready, _, _ = select.select(both, [], [])
        try:
            if connection in ready:
                data = connection.recv(PIECE_BYTES)
                if not data:
                    return
                _write_all(data)
            if 0 in ready:
                data = os.read(0, PIECE_BYTES)
                if not data:
                    return
                connection.sendall(data)
        except ConnectionError:
            return


def _write_all(data: bytes) -> None:
    view = memoryview(data)
    while view:
        with limited(PATIENCE_S):
            view = view[os.write(1, view) :]


def _fail(text: str) -> int:
    sys.stderr.write(text + "\n")
    return NO_SUPERVISOR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
