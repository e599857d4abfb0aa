"""Removal of the files of earlier runs on machines (`testbed.machines.remote_cleanup`)."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from experiments.child_python import program_command
from experiments.records.rundir import POINTS, RunDirectory
from testbed.errors import TestbedError
from testbed.machines import remote_cleanup, run_folders
from testbed.machines.archive import Archive
from testbed.machines.facts import Amount, SanitizedText, ask
from testbed.machines.parallel import on_each
from testbed.machines.software import trusted_folders
from testbed.machines.software.deploy import PYTHON, sent_program
from testbed.machines.ssh import time_limit
from testbed.machines.ssh.ssh import SshConnection
from topologies.errors import InputError

CLEAR_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class CleanupResult:
    """The result of a cleanup on one machine, by names of runs.

    ended: runs whose supervisor without a controller was ended. in_use: not touched. kept: runs that are not
    fully shipped, with their bytes. code: the number of removed archives of other versions.
    """

    ended: tuple[SanitizedText, ...]
    removed: tuple[SanitizedText, ...]
    in_use: tuple[SanitizedText, ...]
    kept: Mapping[SanitizedText, Amount]
    code: Amount


_CLEARED = TypeAdapter(CleanupResult)


def clean(
    connections: Sequence[SshConnection], runs: Path, archive: Archive
) -> list[CleanupResult | TestbedError]:
    """Clean all these machines at once; returns each machine's result or error, in their order.

    runs: the folder of runs here, whose records list the shipped files. archive: the code that stays.
    """
    program = sent_program(time_limit, trusted_folders, run_folders, remote_cleanup)

    def one(connection: SshConnection) -> CleanupResult:
        machine = connection.machine
        request = {
            "folder": machine.folder,
            "shipped": shipped_from(runs, machine.name),
            "code": archive.sha256,
        }
        command = program_command(program, python=PYTHON)
        return ask(connection, command, request, _CLEARED, timeout_s=CLEAR_TIMEOUT_S, doing="clean")

    return on_each(one, connections)


def shipped_from(runs: Path, machine: str) -> list[str]:
    """Return the runs below `runs` that have all files of this machine."""
    names = []
    for path in sorted([*runs.glob("*/run.json"), *runs.glob(f"*/{POINTS}/*/run.json")]):
        with suppress(InputError):  # a run that cannot be read has shipped nothing
            shipped = RunDirectory(path.parent).read_run().shipped
            if any(each.machine == machine and each.complete for each in shipped):
                names.append(RunDirectory(path.parent).full_name)
    return names
