"""Removes from machines what earlier runs left there, and says what stays (`testbed.machines.clearing`)."""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from experiments.child_python import program_command
from experiments.rundir import POINTS, RunDirectory
from testbed.errors import TestbedError
from testbed.machines import clearing, limited_waiting, own_folders, run_folders
from testbed.machines.agent import files
from testbed.machines.archive import Archive
from testbed.machines.deploy import PYTHON, sent_program
from testbed.machines.facts import Amount, Said, read_answer
from testbed.machines.on_each import on_each
from testbed.machines.ssh import Connection
from topologies.errors import InputError

CLEAR_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Cleared:
    """What was done on a machine: names of runs, and how many archives of other versions were removed.

    ended: nobody was connected to their supervisors. in_use: left alone. kept: not shipped whole; bytes.
    """

    ended: tuple[Said, ...]
    removed: tuple[Said, ...]
    in_use: tuple[Said, ...]
    kept: Mapping[Said, Amount]
    code: Amount


_CLEARED = TypeAdapter(Cleared)


def clean(connections: Sequence[Connection], runs: Path, archive: Archive) -> list[Cleared | TestbedError]:
    """Clean all these machines at once; in their order what was done, or what went wrong.

    runs: where runs are kept here, which say what of them has been shipped. archive: the code that stays.
    """
    program = sent_program(limited_waiting, files, own_folders, run_folders, clearing)

    def one(connection: Connection) -> Cleared:
        machine = connection.machine
        request = {
            "folder": machine.folder,
            "shipped": shipped_from(runs, machine.name),
            "code": archive.sha256,
        }
        data = json.dumps(request).encode() + b"\n"
        command = program_command(program, python=PYTHON)
        done = connection.run(command, data=data, timeout_s=CLEAR_TIMEOUT_S, root=True)
        if done.code != 0:
            raise TestbedError(f"{machine.name}: cannot clean: {done.said}")
        try:
            return read_answer(_CLEARED, done.stdout)
        except TestbedError as error:
            raise TestbedError(f"{machine.name}: {error}") from None

    return on_each(one, connections)


def shipped_from(runs: Path, machine: str) -> list[str]:
    """The runs below `runs` that have all files of this machine."""
    names = []
    for path in sorted([*runs.glob("*/run.json"), *runs.glob(f"*/{POINTS}/*/run.json")]):
        with suppress(InputError):  # a run that cannot be read has shipped nothing
            shipped = RunDirectory(path.parent).read_run().get("shipped", [])
            if any(each["machine"] == machine and each["complete"] for each in shipped):
                names.append(RunDirectory(path.parent).full_name)
    return names
