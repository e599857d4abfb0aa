"""The options of nights, as given on the command line of `cutset nightly`."""

from dataclasses import dataclass
from pathlib import Path

from experiments.records.rundir import RUNS
from topologies.errors import InputError
from topologies.quantities import QuantityError, parse_size_bytes

HISTORY = Path("history")
"""The default folder of the history, beside runs/."""
SITE = "site"
"""The morning page's folder, in the history."""


@dataclass(frozen=True, slots=True)
class NightOptions:
    """The options of nights, without the suite and the date. Raises InputError if a night could not start."""

    jobs: int
    out: Path
    history: Path
    site: Path | None  # None: in the history
    hooks: tuple[str, ...]
    hooks_always: tuple[str, ...]
    keep: str | None = None  # None: no limit

    def __post_init__(self) -> None:
        from testbed.nightly.hooks import check_hooks

        check_hooks((*self.hooks, *self.hooks_always))
        _ = self.keep_bytes  # raises InputError if it is invalid

    @property
    def page_folder(self) -> Path:
        """The folder of the morning page."""
        return self.site or self.history / SITE

    @property
    def keep_bytes(self) -> int | None:
        """The disk budget of the history's runs in bytes. Raises InputError."""
        return None if self.keep is None else kept_bytes(self.keep)

    def words(self, *, absolute: bool) -> list[str]:
        """Return the options for a command line, without defaults. absolute: make paths absolute."""
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


def kept_bytes(keep: str) -> int:
    """Return the bytes of `--keep 50GB`. Raises InputError."""
    try:
        return parse_size_bytes(keep, such_as="50GB")
    except QuantityError as error:
        raise InputError("--keep", None, "", str(error)) from None
