"""Files of recorded links: rate over time in the trace format of mahimahi, delay over time and quantiles of
the delay as CSV.

A trace of mahimahi (mm-link(1)) has a line for each packet of 1500 bytes that the link could deliver, with
the time in whole milliseconds, which never decreases; the last line is also the trace's length. It becomes a
rate in steps: the number of such packets, with their Ethernet headers, in each step.

A CSV of delays begins with `time_s,delay_ms`. A row is valid until the next one; the last one ends the trace,
and its own delay may be left out. If rows are closer than a step, the step has their mean over time.

A CSV of quantiles begins with `quantile,delay_ms` and goes from quantile 0 to 1.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from math import ceil
from pathlib import Path

from topologies.bounded_files import decoded, number_in, read_bounded, rows_of
from topologies.document import shown_path
from topologies.errors import InputError
from topologies.jitter import POINTS, Quantiles
from topologies.link_parameters import DELAY_US_MAX, ETHERNET_BYTES
from topologies.link_trace import STEP_US, TraceSteps, steps_of

BYTES_MAX = 64 << 20
SECONDS_MAX = 3_600
OPPORTUNITIES_MAX = 5_000_000
ROWS_MAX = 500_000
OPPORTUNITY_BYTES = 1500 + ETHERNET_BYTES
HEADER = "time_s,delay_ms"
QUANTILES_HEADER = "quantile,delay_ms"
QUANTILES_ENDING = ".csv"
QUANTILES_MAX = 10_000
DIGITS_MAX = 12
_US_PER_S = 1_000_000


def read_rate_trace(path: Path) -> TraceSteps:
    """Read bits per second over time. Raises InputError with file and line."""
    return _rate_trace(path, _content(path))


def read_delay_trace(path: Path) -> TraceSteps:
    """Read one-way delay over time, microseconds. Raises InputError with file and line."""
    return _delay_trace(path, _content(path))


@cache
def _rate_trace(path: Path, content: bytes) -> TraceSteps:
    times_ms = list(_opportunities(path, content))
    period_us = times_ms[-1] * 1000
    if not period_us:
        raise _wrong(path, len(times_ms), "ends at 0 ms: the last line is the trace's length")
    counts = [0] * steps_of(period_us)
    for time_ms in times_ms:
        counts[min(time_ms * 1000 // STEP_US, len(counts) - 1)] += 1
    widths_us = _widths_us(period_us)
    rates = (
        round(count * OPPORTUNITY_BYTES * 8 * _US_PER_S / width_us)
        for count, width_us in zip(counts, widths_us, strict=True)
    )
    return TraceSteps(path.name, sha256(content).hexdigest(), period_us, tuple(rates))


def _opportunities(path: Path, content: bytes) -> Iterator[int]:
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    if not lines:
        raise _wrong(path, None, "is empty")
    if len(lines) > OPPORTUNITIES_MAX:
        raise _wrong(path, None, f"has more than {OPPORTUNITIES_MAX:,} lines")
    before_ms = 0
    for number, line in enumerate(lines, 1):
        text = line.strip()
        if not text.isdigit() or len(text) > DIGITS_MAX:
            raise _wrong(path, number, f"{_shown(line)} is not a time in whole milliseconds, 0 or more")
        time_ms = int(text)
        if time_ms < before_ms:
            raise _wrong(path, number, f"{time_ms} ms is before {before_ms} ms, the line above")
        if time_ms > SECONDS_MAX * 1000:
            raise _wrong(path, number, f"{time_ms} ms: a trace has at most {SECONDS_MAX} s")
        yield time_ms
        before_ms = time_ms


@cache
def _delay_trace(path: Path, content: bytes) -> TraceSteps:
    rows = list(_delay_rows(path, content))
    *held, (_, period_us, _) = rows
    edges = [start for _, start, _ in held] + [period_us]
    delays = [delay_us for _, _, delay_us in held]
    values, at, begin_us = [], 0, 0
    for width_us in _widths_us(period_us):
        end_us, total = begin_us + width_us, 0.0
        while at < len(delays):
            overlap_us = min(end_us, edges[at + 1]) - max(begin_us, edges[at])
            total += overlap_us * delays[at]
            if edges[at + 1] > end_us:
                break
            at += 1
        values.append(round(total / width_us))
        begin_us = end_us
    return TraceSteps(path.name, sha256(content).hexdigest(), period_us, tuple(values))


def _delay_rows(path: Path, content: bytes) -> Iterator[tuple[int, int, float]]:
    """Yield line, time in microseconds, delay in microseconds."""
    rows = list(rows_of(decoded(content, shown_path(path))))
    if not rows:
        raise _wrong(path, None, "is empty")
    if len(rows) > ROWS_MAX:
        raise _wrong(path, None, f"has more than {ROWS_MAX:,} rows")
    (number, header), *rest = rows
    if "".join(header.lower().split()) != HEADER:
        raise _wrong(path, number, f"should be {HEADER}, not {header[:40]!r}")
    if len(rest) < 2:
        raise _wrong(path, number, "has fewer than two rows: one with a delay, and one that ends the trace")
    before_us = -1
    for number, line in rest:
        is_last = number == rest[-1][0]
        time_text, comma, delay_text = line.partition(",")
        if not comma:
            raise _wrong(path, number, f"{line[:40]!r} should be {HEADER}")
        time_us = round(_number(path, number, "time_s", time_text, SECONDS_MAX) * _US_PER_S)
        if before_us < 0 and time_us:
            raise _wrong(path, number, f"the first row should be at time 0, not {time_text.strip()} s")
        if time_us <= before_us:
            raise _wrong(path, number, f"{time_text.strip()} s is not after the row above")
        before_us = time_us
        if is_last and not delay_text.strip():
            delay_text = "0"
        yield number, time_us, _number(path, number, "delay_ms", delay_text, DELAY_US_MAX / 1000) * 1000


def measured_quantiles(path: Path, delay_us: int) -> tuple[int, Quantiles]:
    """Return the jitter in microseconds and the quantiles of a measured distribution around a delay.

    Raises InputError with file and line.
    """
    rows = _quantile_rows(path, _content(path))
    at = [row[0] for row in rows]
    values = []
    for step in range(POINTS):
        quantile = step / (POINTS - 1)
        after = min(max(1, bisect_right(at, quantile)), len(rows) - 1)
        (one, low), (other, high) = rows[after - 1 : after + 1]
        values.append(low + (high - low) * (quantile - one) / (other - one) - delay_us)
    jitter_us = ceil(max(map(abs, values))) or 1
    return jitter_us, tuple(round(value / jitter_us, 6) for value in values)


@cache
def _quantile_rows(path: Path, content: bytes) -> tuple[tuple[float, float], ...]:
    """Return quantiles and delays in microseconds."""
    file = shown_path(path)
    lines = list(rows_of(decoded(content, file)))
    if not lines or "".join(lines[0][1].lower().split()) != QUANTILES_HEADER:
        raise InputError(file, lines[0][0] if lines else None, "", f"should begin with {QUANTILES_HEADER}")
    if not 3 <= len(lines) <= QUANTILES_MAX:
        raise InputError(file, None, "", f"should have 2 to {QUANTILES_MAX - 1:,} rows below its header")
    rows: list[tuple[float, float]] = []
    for line, text in lines[1:]:
        one, _, other = text.partition(",")
        quantile = number_in(one, file=file, line=line, name="quantile", most=1)
        delay_ms = number_in(other, file=file, line=line, name="delay_ms", most=DELAY_US_MAX / 1000)
        if rows and (quantile <= rows[-1][0] or delay_ms * 1000 < rows[-1][1]):
            raise InputError(
                file, line, "", "should have a higher quantile than the row above, and no less delay"
            )
        rows.append((quantile, delay_ms * 1000))
    if (rows[0][0], rows[-1][0]) != (0, 1):
        raise InputError(file, None, "", "should go from quantile 0 to 1")
    return tuple(rows)


def _number(path: Path, line: int, name: str, text: str, most: float) -> float:
    return number_in(text, file=shown_path(path), line=line, name=name, most=most)


def _widths_us(period_us: int) -> Sequence[int]:
    """Return the duration of each step."""
    count = steps_of(period_us)
    return [STEP_US] * (count - 1) + [period_us - STEP_US * (count - 1)]


def _content(path: Path) -> bytes:
    return read_bounded(path, shown_path(path), BYTES_MAX)


def _shown(line: bytes) -> str:
    return repr(line[:40].decode(errors="replace"))


def _wrong(path: Path, line: int | None, problem: str) -> InputError:
    return InputError(shown_path(path), line, "", problem)
