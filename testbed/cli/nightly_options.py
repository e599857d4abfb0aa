"""Options that running a night and installing one share."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from experiments.rundir import RUNS
from testbed.cli.options import HISTORY, history_option, kept_bytes, out_option

Command = TypeVar("Command", bound=Callable[..., Any])
SITE = "site"
"""The morning page's folder, in the history."""


@dataclass(frozen=True, slots=True)
class NightOptions:
    """How nights are run, whichever night it is."""

    jobs: int
    out: Path
    history: Path
    site: Path | None  # None: in the history
    hooks: tuple[str, ...]
    hooks_always: tuple[str, ...]
    keep: str | None = None  # None: whatever it takes

    @property
    def page_folder(self) -> Path:
        """Where the morning page is written."""
        return self.site or self.history / SITE

    @property
    def keep_bytes(self) -> int | None:
        """What the history's runs may take on the disk. Raises InputError."""
        return None if self.keep is None else kept_bytes(self.keep)

    def words(self, *, absolute: bool) -> list[str]:
        """As on a command line; what is as usual is left out. absolute: paths count from anywhere."""
        paths = {"--out": (self.out, RUNS), "--history": (self.history, HISTORY), "--site": (self.site, None)}
        words = [] if self.jobs == 1 else ["--jobs", str(self.jobs)]
        for option, (path, usual) in paths.items():
            if path is not None and path != usual:
                words += [option, str(path.absolute() if absolute else path)]
        if self.keep is not None:
            words += ["--keep", self.keep]
        for hook in self.hooks:
            words += ["--hook", hook]
        for hook in self.hooks_always:
            words += ["--hook-always", hook]
        return words


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
