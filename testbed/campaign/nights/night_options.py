"""The options of nights, as given on the command line of `cutset nightly`."""

from dataclasses import dataclass
from pathlib import Path

from experiments.records.rundir import RUNS
from topologies.quantities import SIZE

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
    keep_bytes: int | None = None  # the disk budget of the history's runs; None: no limit

    def __post_init__(self) -> None:
        from testbed.nightly.hooks import check_hooks

        check_hooks((*self.hooks, *self.hooks_always))

    @property
    def page_folder(self) -> Path:
        """The folder of the morning page."""
        return self.site or self.history / SITE

    def words(self, *, absolute: bool) -> list[str]:
        """Return the options for a command line, without defaults. absolute: make paths absolute."""
        paths = {"--out": (self.out, RUNS), "--history": (self.history, HISTORY), "--site": (self.site, None)}
        words = [] if self.jobs == 1 else ["--jobs", str(self.jobs)]
        for option, (path, usual) in paths.items():
            if path is not None and path != usual:
                words += [option, str(path.absolute() if absolute else path)]
        if self.keep_bytes is not None:
            words += ["--keep", SIZE.format(self.keep_bytes)]
        for hook in self.hooks:
            words += ["--hook", hook]
        for hook in self.hooks_always:
            words += ["--hook-always", hook]
        return words
