"""The `cutset` command: finds the command asked for, and turns errors into one clear line and an exit code.

A command lives in a module of its own in a package beside this one and is imported only when it is used, so
that short commands start at once. Exit codes: 0 fine, 1 an expectation or the fidelity failed, 2 bad input,
3 the machine cannot do it, 130 interrupted.
"""

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path

import click
from click.exceptions import NoSuchCommand

from experiments.child_python import absolute_entries
from testbed.campaign.printable_streams import only_printable
from testbed.interrupts import none_dropped

GROUPS = {
    "Run": {
        "doctor": "Check what this machine can do.",
        "list": "List experiments, topologies, systems and suites.",
        "plan": "Show what would run; start nothing.",
        "run": "Run an experiment, analyse it and write its report.",
        "hosts": "Check the machines of an inventory.",
        "shell": "Bring the network up and cause faults by hand.",
        "study": "Repeat an experiment of a paper at its size.",
        "hunt": "Search for faults that break a system's promises.",
    },
    "Look": {
        "report": "Write a run's page and figures again.",
        "compare": "Compare runs or systems on one page.",
        "packets": "Show the messages that processes sent.",
        "follow": "Follow one event, hop by hop.",
        "diagram": "Draw the messages around a moment.",
        "sql": "Query the tables of runs in SQL.",
        "analyze": "Analyse runs again, here or on a cluster.",
    },
    "Share": {
        "export": "Pack a run into one archive.",
        "verify": "Recompute every figure of a run from its captures.",
        "reproduce": "Run an archived run again and compare.",
        "fetch": "Fetch what of a run is still on its machines.",
    },
    "Every night": {
        "nightly": "Run a suite; fail if something got worse.",
        "history": "List the runs of all nights, and make room.",
    },
    "Make inputs": {
        "topology": "Write a topology from measured round-trip times.",
        "emulab": "Request machines of Emulab or CloudLab.",
        "dissector": "Write a Wireshark dissector of a system's messages.",
        "schema": "Print the JSON schema of a kind of file.",
    },
}
"""The commands as the help shows them. Each is a module of its name in its group's package."""
PACKAGES = {"Run": "run", "Look": "look", "Share": "share", "Every night": "nights", "Make inputs": "inputs"}
COMMANDS = {
    name: f"testbed.cli.{PACKAGES[group]}.{'list_' if name == 'list' else name}"
    for group, names in GROUPS.items()
    for name in names
}
OPTION = "--system-module"
LIBRARIES = {"OPENBLAS_NUM_THREADS": "1", "PYDANTIC_DISABLE_PLUGINS": "__all__"}
"""What libraries are told, unless the user tells them otherwise: NumPy starts no thread per processor when it
is imported, for linear algebra, of which there is little here; pydantic searches no packages for plugins.
"""
GARBAGE = 200_000
"""Objects after which Python looks for cycles; a short command makes fewer. Looking at 50,000 takes 50 ms."""


class CommandGroup(click.Group):
    """Loads a command's module on demand, and lists commands as GROUPS has them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """A section for each group, a line for each command; no command is imported for that."""
        widest = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{widest}}", line) for name, line in names.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, which would not know what to suggest for a name that is none."""
        try:
            return super().resolve_command(ctx, args)
        except NoSuchCommand as error:
            raise NoSuchCommand(error.command_name, possibilities=COMMANDS, ctx=ctx) from None


@click.command(
    cls=CommandGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.version_option(package_name="cutset", prog_name="cutset")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.option(
    "--system-module",
    "modules",
    multiple=True,
    type=click.Path(path_type=Path),
    help="A Python file that declares a system of your own; may be repeated.",
)
def cutset(debug: bool, modules: tuple[Path, ...]) -> None:
    """Run real node processes on an emulated wide-area network, cut its links, see how long recovery takes.

    Start with `cutset doctor`, then `cutset run link-failure`.
    """
    if modules:
        _add_system_modules(modules)


def main() -> None:
    """Entry point of the `cutset` command."""
    code = run(sys.argv[1:])
    gc.freeze()  # Python looks for cycles again as it ends, when all memory goes anyway
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Carry out a command line; returns its exit code."""
    gc.set_threshold(GARBAGE)
    for name, value in LIBRARIES.items():
        os.environ.setdefault(name, value)
    _search_no_working_directory()
    with only_printable(), none_dropped():
        return _carry_out(arguments)


def _carry_out(arguments: list[str]) -> int:
    try:
        _check_working_directory()
        result = cutset.main(arguments, prog_name="cutset", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place where errors become a code
        return _code_of(error, debug="--debug" in arguments)
    return result if isinstance(result, int) else 0


def _code_of(error: Exception | KeyboardInterrupt, *, debug: bool) -> int:
    """Say what ended a command; returns the exit code."""
    from testbed.campaign import exit_codes

    if isinstance(error, click.ClickException):
        error.show()
        return exit_codes.BAD_INPUT
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo("cutset: interrupted", err=True)
        return exit_codes.INTERRUPTED
    return _complain(error, debug=debug)


def _search_no_working_directory() -> None:
    """Neither for programs nor, in Python processes that we start, for modules."""
    for name in ("PATH", "PYTHONPATH"):
        if name in os.environ:
            os.environ[name] = absolute_entries(os.environ[name])


def _check_working_directory() -> None:
    """Raises MachineError if the folder that the command was given in is gone: no path means anything."""
    from testbed.errors import MachineError

    try:
        Path.cwd()
    except FileNotFoundError:
        raise MachineError("the folder that this was started in is not there any more") from None


def _complain(error: Exception, *, debug: bool) -> int:
    """One line about an error that is ours; anything else is a bug of ours and keeps its traceback."""
    from testbed.campaign import exit_codes

    code = exit_codes.of(error)
    if debug or code is None:
        traceback.print_exception(error)
    click.echo(f"cutset: {exit_codes.line_of(error)}", err=True)
    return exit_codes.FAILED if code is None else code


def _add_system_modules(modules: Iterable[Path]) -> None:
    """Let these files' systems be known, here and in all that is started from here. Raises InputError."""
    from experiments.declared import UnknownSystemError, add_module
    from topologies.errors import InputError

    for module in modules:
        try:
            add_module(module)
        except UnknownSystemError as error:
            raise InputError(OPTION, None, "", str(error)) from None


if __name__ == "__main__":
    main()
