"""A system's behaviour at a cut as sentences, from the TCP connections across the link that was cut.

These sentences are possible for systems of programs, too, whose messages are not known.
"""

from collections.abc import Iterable, Sequence

from analysis.pages.report.formatting import EN_DASH, count_of, seconds
from analysis.pages.report.run_reader import Row
from analysis.pages.systems.sides import RegionCut, SystemRun, cut_of
from analysis.timelines.links.tcp_outages import AT_ONCE_S

PORTS_NAMED = 3


def story(run: SystemRun) -> tuple[str, ...]:
    """Return a run's sentences; none if no link was cut and restored, or no connection crossed it."""
    cut = cut_of(run.record)
    if cut is None:
        return ()
    crossing = (row for row in run.record.tcp_outages if row["link"] == cut.link)
    return sentences([row for row in crossing if abs(row["from_s"] - cut.start_s) < AT_ONCE_S], cut)


def sentences(rows: Sequence[Row], cut: RegionCut) -> tuple[str, ...]:
    """Return sentences in order of time. rows: those of `schemas.TCP_OUTAGES` for this cut."""
    if not rows:
        return ()
    stood = [row for row in rows if row["open"]]
    closed = [row for row in stood if row["ended_s"] is not None and row["ended_s"] < row["to_s"]]
    still = [row for row in stood if row not in closed]
    new = [row for row in rows if not row["open"]]
    return tuple(
        filter(
            None,
            (
                _open_at_cut(stood, cut),
                _closed(closed, of=len(stood)) if closed else "",
                _tried([row for row in new if row["tries"]]),
                _stayed_open(still, of=len(stood)) if still else "",
                _reopened([row for row in new if row["through_s"] is not None]),
            ),
        )
    )


def _open_at_cut(stood: Sequence[Row], cut: RegionCut) -> str:
    between = f"between {cut.regions[0]} and {cut.regions[1]}"
    if not stood:
        return f"No connection {between} was open when the link was cut."
    ports = list(dict.fromkeys(str(row["port"]) for row in stood))
    to = f", to port {_listed(ports)}" if len(ports) <= PORTS_NAMED else ""
    opened = "was" if len(stood) == 1 else "were"
    return f"{count_of(len(stood), 'connection')} {between} {opened} open when the link was cut{to}."


def _closed(closed: Sequence[Row], of: int) -> str:
    how = " or ".join(sorted({row["ended_how"] for row in closed}))
    was = "was" if len(closed) == 1 else "were"
    at = _span(row["ended_s"] - row["from_s"] for row in closed)
    return f"{_whom(len(closed), of)} {was} closed {at} after the cut (by {how})."


def _tried(tried: Sequence[Row]) -> str:
    if not tried:
        return "No new connection was tried over the cut link while it was down."
    times = count_of(sum(row["tries"] for row in tried), "time")
    last = seconds(max(row["last_try_s"] - row["from_s"] for row in tried))
    return f"New connections were tried {times} while the link was down, last {last} after the cut."


def _stayed_open(still: Sequence[Row], of: int) -> str:
    """Return what connections that stayed open did while the link was down, and after that."""
    text = f"{_whom(len(still), of)} stayed open"
    tried = [row for row in still if row["tries"]]
    if tried:
        most = count_of(max(row["tries"] for row in tried), "segment")
        last = seconds(max(row["last_try_s"] - row["from_s"] for row in tried))
        text += f": TCP sent up to {most} in vain, last {last} after the cut"
    through = [row["through_s"] - row["to_s"] for row in still if row["through_s"] is not None]
    if not through:
        return f"{text}; no data arrived afterwards."
    silent = f" ({len(still) - len(through)} never)" if len(through) < len(still) else ""
    return f"{text}; data arrived {_span(through)} after the link was restored{silent}."


def _reopened(new: Sequence[Row]) -> str:
    if not new:
        return ""
    at = _span(row["through_s"] - row["to_s"] for row in new)
    return f"{count_of(len(new), 'new connection')} came through {at} after the link was restored."


def _whom(count: int, of: int) -> str:
    """Return the subject of a sentence about this number of connections."""
    if count < of:
        return "One of them" if count == 1 else f"{count} of them"
    return {1: "It", 2: "Both"}.get(of, "All")


def _span(times_s: Iterable[float]) -> str:
    """Return the least and the greatest of some times."""
    known = list(times_s)
    low, high = seconds(min(known)), seconds(max(known))
    return low if low == high else f"{low}{EN_DASH}{high}"


def _listed(names: Sequence[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
