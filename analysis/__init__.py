"""From a run's captures to packets, events, timelines and verdicts; in Python: `analysis.open("latest")`."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.opened import open_run as open  # noqa: A004 - as with files, and only by its full name

__all__ = ["open"]


def __getattr__(name: str) -> Any:
    """What this package offers, loaded when it is asked for: all of its modules are imported through here."""
    if name != "open":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from analysis.opened import open_run  # noqa: PLC0415

    return open_run
