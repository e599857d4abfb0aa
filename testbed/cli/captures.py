"""Captures as the argument of a command, in place of a run."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from analysis.capture.time_range import TimeRange
    from analysis.sql.cases import CapturesCase


@contextmanager
def opened_captures(
    names: Sequence[str],
    from_s: Decimal | None = None,
    to_s: Decimal | None = None,
    silence_s: float | None = None,
    system: str | None = None,
) -> "Iterator[list[CapturesCase]]":
    """Open captures for the length of a block: a case with all of them, or none without names.

    from_s, to_s: the wanted time since the first packet. silence_s: the least silence that is a row. system:
    whose messages are decoded.
    Raises InputError if none can be used.
    """
    if not names:
        yield []
        return
    from analysis.errors import CaptureError
    from analysis.sql.cases import CapturesCase
    from analysis.taps.connections import SILENCE_S
    from analysis.taps.crossing import compared
    from analysis.taps.decoding import decoding_of
    from analysis.taps.opening import opened
    from analysis.taps.tables import TapTables
    from topologies.errors import InputError

    with ExitStack() as stack:
        try:
            taps = stack.enter_context(opened(names))
        except CaptureError as error:
            name, _, problem = str(error).partition(": ")
            raise InputError(name, None, "", problem) from None
        for name, problem in taps.unusable.items():
            click.echo(f"{name} is left out: {problem}", err=True)
        for tap in taps.taps:
            if tap.index.problem:
                click.echo(f"{tap.name} is read in part: {tap.index.problem}", err=True)
        found = compared(taps)
        times = _times(found.taps.zero_ns, from_s, to_s)
        least_s = SILENCE_S if silence_s is None else silence_s
        decoding = None if system is None else decoding_of(system)
        yield [CapturesCase(TapTables(found, times, least_s, decoding))]


def _times(zero_ns: int, from_s: Decimal | None, to_s: Decimal | None) -> "TimeRange":
    from analysis.capture.time_range import TimeRange

    if from_s is not None and to_s is not None and from_s >= to_s:
        raise click.UsageError(f"--from {from_s} is not before --to {to_s}")
    first, end = (None if each is None else zero_ns + int(each * 10**9) for each in (from_s, to_s))
    return TimeRange(first, end)
