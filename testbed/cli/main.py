"""The `cutset` command: finds the requested command, and turns errors into one line and an exit code.

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
from click.exceptions import NoArgsIsHelpError, NoSuchCommand

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
        "captures": "Write a page about any captures.",
        "sql": "Query tables in SQL.",
        "analyze": "Analyse runs again, here or on a cluster.",
    },
    "Share": {
        "export": "Pack a run into one archive.",
        "verify": "Recompute every figure of a run from its captures.",
        "reproduce": "Run an archived run again and compare.",
        "fetch": "Fetch files of a run that are still on its machines.",
    },
    "Every night": {
        "nightly": "Run a suite; fail if something got worse.",
        "history": "List the runs of all nights, and remove old captures.",
    },
    "Make inputs": {
        "topology": "Write a topology from round trips or a known network.",
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
"""Defaults for libraries, unless the user sets them. NumPy does not start a thread per processor on import
for linear algebra, which is rarely used here; pydantic does not search packages for plugins.
"""
GARBAGE = 200_000
"""Objects after which Python looks for cycles; short commands make fewer. Scanning 50,000 takes 50 ms."""


class CommandGroup(click.Group):
    """A group that loads a command's module on demand, and lists commands in the order of GROUPS."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does; refuse empty words, which a shell makes of an unset variable: `"$RUN"`."""
        if "" in args:
            problem = f"word {args.index('') + 1} is empty: is a variable of the shell not set?"
            raise click.UsageError(problem, ctx)
        return super().parse_args(ctx, args)

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command of that name, or None."""
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = importlib.import_module(COMMANDS[cmd_name]).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group and a line for each command, without importing the commands."""
        widest = max(map(len, COMMANDS))
        for title, names in GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:<{widest}}", line) for name, line in names.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve a command as click does, and suggest similar names for an unknown one."""
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
    """Run the `cutset` command and exit with its exit code."""
    code = run(sys.argv[1:])
    # DuckDB's objects may be left in a cycle, and DuckDB reports those that are not collected.
    if code == 0 and "duckdb" not in sys.modules:
        gc.freeze()  # saves a last search for cycles, since all memory is released anyway
    sys.exit(code)


def run(arguments: list[str]) -> int:
    """Execute a command line and return its exit code."""
    gc.set_threshold(GARBAGE)
    for name, value in LIBRARIES.items():
        os.environ.setdefault(name, value)
    _search_no_working_directory()
    with only_printable(), none_dropped():
        return _execute(arguments)


def _execute(arguments: list[str]) -> int:
    try:
        _check_working_directory()
        result = cutset.main(arguments, prog_name="cutset", standalone_mode=False)
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001 - the one place where errors become a code
        return _code_of(error, debug="--debug" in arguments)
    return result if isinstance(result, int) else 0


def _code_of(error: Exception | KeyboardInterrupt, *, debug: bool) -> int:
    """Print why a command ended; return the exit code."""
    from testbed.campaign import exit_codes

    if isinstance(error, click.ClickException):
        click.echo(_misuse(error), err=True)
        return exit_codes.BAD_INPUT
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        click.echo("cutset: interrupted", err=True)
        return exit_codes.INTERRUPTED
    return _complain(error, debug=debug)


def _misuse(error: click.ClickException) -> str:
    """Return the line about wrong words of a command line, or the help if there are none."""
    if isinstance(error, NoArgsIsHelpError):
        return error.format_message()
    command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "cutset"
    return f"cutset: {' '.join(error.format_message().split())} ({command} --help)"


def _search_no_working_directory() -> None:
    """Make search paths absolute, so that no program or module is found in the working directory."""
    for name in ("PATH", "PYTHONPATH"):
        if name in os.environ:
            os.environ[name] = absolute_entries(os.environ[name])


def _check_working_directory() -> None:
    """Raise MachineError if the working directory no longer exists, because paths would be invalid."""
    from testbed.errors import MachineError

    try:
        Path.cwd()
    except FileNotFoundError:
        raise MachineError("the working directory no longer exists") from None


def _complain(error: Exception, *, debug: bool) -> int:
    """Print one line about an expected error; print the traceback of any other error, which is a defect."""
    from testbed.campaign import exit_codes

    code = exit_codes.exit_code_of(error)
    if debug or code is None:
        traceback.print_exception(error)
    click.echo(f"cutset: {exit_codes.line_of(error)}", err=True)
    return exit_codes.FAILED if code is None else code


def _add_system_modules(modules: Iterable[Path]) -> None:
    """Add the systems of these files, here and in processes started from here. Raises InputError."""
    from experiments.declared import UnknownSystemError, add_module
    from topologies.errors import InputError

    for module in modules:
        try:
            add_module(module)
        except UnknownSystemError as error:
            raise InputError(OPTION, None, "", str(error)) from None


if __name__ == "__main__":
    main()
