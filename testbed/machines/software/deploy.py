"""Deployment of the archive of our code to machines, to each at most once.

A small program (`testbed.machines.software.unpacking`) is part of the command line that starts it. It
reports whether the machine has this archive, and receives it if not. Afterwards `code_folder` is complete
and can be put on PYTHONPATH.

Programs for machines that have none of our code yet consist of modules that need only the standard library.
On the machine each module is created under its own name before the next one, which may import it; the last
one runs as `__main__` (cf. `python3 -c`).
"""

import inspect
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType

from experiments.child_python import SAFE_PATH, program_command
from systems.images.store import STORE_VARIABLE
from testbed.errors import TestbedError
from testbed.machines.archive import Archive
from testbed.machines.inventory import InventoryMachine
from testbed.machines.parallel import all_or_raise, on_each
from testbed.machines.software import trusted_folders, unpacking
from testbed.machines.ssh import time_limit
from testbed.machines.ssh.ssh import RemoteProcess, SshConnection, UnreachableError

PYTHON = "python3"
ANSWER_S = 60.0  # enough for a slow disk or a slow link
LINE_BYTES_MAX = 200
PIECE_BYTES = 1 << 20


def code_folder(machine: InventoryMachine, archive: Archive) -> str:
    """Return the folder on a machine into which this archive is unpacked."""
    return f"{machine.code}/{archive.sha256}"


def our_python(code: str) -> list[str]:
    """Return the start of a command line that runs our code on a machine; `code` is the archive's folder.

    Mininet imports distutils. The archive has the necessary part of it; the machine's setuptools is disabled,
    because importing it would take longer than all other imports.
    """
    images = f"{STORE_VARIABLE}={Path(code).parent}/images"
    return ["env", f"PYTHONPATH={code}", images, "SETUPTOOLS_USE_DISTUTILS=stdlib", PYTHON, SAFE_PATH]


def deploy(connections: Sequence[SshConnection], archive: Archive) -> list[bool]:
    """Deploy the archive to all these machines at once; returns for each whether it had to be sent.

    Raises MachineError or TestbedError with the errors of all machines that failed.
    """
    return all_or_raise(on_each(lambda connection: deploy_to(connection, archive), connections))


def deploy_to(connection: SshConnection, archive: Archive) -> bool:
    """Deploy the archive to one machine; returns whether it had to be sent. Raises TestbedError."""
    content = archive.content
    program = sent_program(time_limit, trusted_folders, unpacking)
    arguments = (connection.machine.code, archive.sha256, str(len(content)))

    def send(process: RemoteProcess) -> None:
        for start in range(0, len(content), PIECE_BYTES):
            process.write(content[start : start + PIECE_BYTES])

    command = program_command(program, *arguments, python=PYTHON)
    return send_if_lacking(connection, command, send, "the code", ANSWER_S)


def send_if_lacking(
    connection: SshConnection,
    command: Sequence[str],
    send: Callable[[RemoteProcess], None],
    what: str,
    timeout_s: float,
) -> bool:
    """Start a program that unpacks something unless its machine has it; returns whether it had to be sent.

    The program reports `have`, or `want` and, once `send` is done, `unpacked`. timeout_s: for each report.
    Raises TestbedError.
    """
    with connection.open(command, root=True) as process:
        process.timeout_s = timeout_s
        answer = _answer(process)
        if answer == "want":
            with suppress(UnreachableError):  # it may have ended before it read all, with a reason
                send(process)
            process.end_input()
            answer = _answer(process)
        if answer not in {"have", "unpacked"}:
            process.wait()
            said = process.error_output() or "no error was reported"
            raise TestbedError(f"{connection.machine.name}: cannot deploy {what}: {said}")
        return answer == "unpacked"


def _answer(process: RemoteProcess) -> str:
    return process.read_line(LINE_BYTES_MAX).decode(errors="replace").strip()


BEGINNING = """\
import sys, types
def made(name, source):
    parts = name.split(".")
    for end in range(1, len(parts)):
        parent = sys.modules.setdefault(".".join(parts[:end]), types.ModuleType(".".join(parts[:end])))
        parent.__path__ = []
    module = sys.modules[name] = types.ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
"""


def sent_program(*modules: ModuleType) -> str:
    """Return the text for `python3 -c` of these modules; the last one is the main module."""
    *imported, main = modules
    made = [f"made({module.__name__!r}, {inspect.getsource(module)!r})" for module in imported]
    return "\n".join([BEGINNING, *made, f"exec(compile({inspect.getsource(main)!r}, 'sent', 'exec'))"])
