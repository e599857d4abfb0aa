"""Analysis of a run: captures to packets, events, timelines and verdicts. In Python:
`analysis.open("latest")`.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from analysis.opened import open_run as open  # noqa: A004 - as with files, and only by its full name

__all__ = ["open"]


def __getattr__(name: str) -> Any:
    """Load `open` on first access. Importing any module of this package runs this file, so it must stay
    cheap.
    """
    if name != "open":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from analysis.opened import open_run  # noqa: PLC0415

    return open_run
