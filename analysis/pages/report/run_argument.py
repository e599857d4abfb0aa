"""How a command that a page or a picture shows names its run: so that it works where the page was made.

Below runs/ a run goes by its name, elsewhere below the working directory by its relative path; a run that
stands anywhere else has only its absolute path, which works everywhere on this machine.
"""

from pathlib import Path

from experiments.rundir import RUNS


def run_argument(path: Path, working: Path | None = None) -> str:
    """The RUN argument for the run directory at this path, not quoted. working: if not the current one."""
    run, here = path.resolve(), (working or Path.cwd()).resolve()
    if run.parent == here / RUNS:
        return run.name
    return run.relative_to(here).as_posix() if run.is_relative_to(here) else str(run)
