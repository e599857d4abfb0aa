"""Options that running a night and installing one share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from testbed.cli.options import history_option, out_option

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--jobs",
        type=click.IntRange(1, 256),
        default=1,
        show_default=True,
        help="So many runs in virtual time at once; one of real processes always has the machine to itself.",
    ),
    out_option,
    history_option,
    click.option(
        "--site",
        type=click.Path(file_okay=False, path_type=Path),
        help="Where the morning page is written.  [default: site/ in the history]",
    ),
    click.option(
        "--keep",
        metavar="SIZE",
        help="Never more on the disk than this, as 50GB: old captures go first, and no number does.",
    ),
    click.option(
        "--hook",
        "hooks",
        multiple=True,
        metavar="COMMAND",
        help="A command to tell when a night failed: it gets JSON on standard input. May be repeated.",
    ),
    click.option(
        "--hook-always",
        "hooks_always",
        multiple=True,
        metavar="COMMAND",
        help="The same, after every night.",
    ),
)


def night_options(command: Command) -> Command:
    """--jobs, --out, --history, --site, --keep, --hook and --hook-always."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command
