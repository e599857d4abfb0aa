"""How the whole run stabilised after its last change, and what TCP did meanwhile (docs/recovery.md)."""

from collections.abc import Sequence
from dataclasses import dataclass

from analysis.pages.report.formatting import count_of, number, precise_seconds, seconds
from analysis.pages.report.run_reader import AnalysedRun, Row
from analysis.pages.report.tables import ROWS_MAX, PageTable, label, quantity, table
from analysis.timelines.links.tcp_outages import AT_ONCE_S
from analysis.timelines.recovering.convergence import SETTLED_NS


@dataclass(frozen=True, slots=True)
class Convergence:
    """Contents of the page's section on convergence."""

    words: str  # how the run stabilised
    connections: PageTable  # what TCP did across links that came back


def convergence(record: AnalysedRun) -> Convergence | None:
    """Return the section; None if the run has no faults with known recovery."""
    if not record.summary.get("recovery"):
        return None
    figures = record.summary.get("convergence") or {}
    return Convergence(
        words=f"{_stabilisation(figures)} {_tcp_text(figures, record.tcp_outages)}".strip(),
        connections=_connections_table(record.tcp_outages),
    )


def _after(missed: int, wait: str) -> str:
    if not missed:
        return f"No event published after it took longer than {wait}."
    were = f"{count_of(missed, 'delivery')} of events published after it never arrived"
    return f"{were}; others took at most {wait}."


def _stabilisation(figures: Row) -> str:
    """Return how the run stabilised after its last change, as text."""
    if figures.get("stalled") is None:
        return ""
    since = f"After the last change, at {seconds(figures.get('last_change_s'))},"
    full, half, beyond, wait = (
        seconds(figures.get(name)) for name in ("full_s", "median_s", "beyond_way_s", "wait_max_s")
    )
    count = figures.get("missed") or 0
    if figures["stalled"]:
        sentences = [f"{since} {count_of(figures['stalled'], 'stream')} never reached a connected client."]
    else:
        sentences = [
            f"{since} every stream flowed again at every client within {full} (median {half}), at most"
            f" {beyond} beyond its path's delay. " + _after(count, wait)
        ]
    if figures.get("connected") is False:
        sentences.append("The links that were up in both directions did not connect all regions.")
    if (late := figures.get("late_switches")) is not None:
        many = (
            f"Servers changed their source {count_of(late, 'time')}"
            if late
            else "No server changed its source"
        )
        sentences.append(f"{many} from {SETTLED_NS / 1e9:.0f}\u00a0s after it.")
    return " ".join(sentences)


def _tcp_text(figures: Row, connections: Sequence[Row]) -> str:
    """Return how much of the silence after the last change TCP's backoff explains, as text."""
    retry_s, full_s = figures.get("tcp_retry_s"), figures.get("full_s")
    if retry_s is None:
        return ""
    last_s = figures.get("last_change_s") or 0.0
    over = [row for row in connections if abs(row["to_s"] - last_s) < AT_ONCE_S]
    last_try_s = max((row["last_try_s"] for row in over if row["last_try_s"] is not None), default=last_s)
    before = seconds(last_s - last_try_s)
    # Streams may flow over another path before TCP retransmits on this one.
    share = (
        f": {retry_s / full_s:.0%} of the time until every stream flowed" if retry_s <= (full_s or 0) else ""
    )
    after = f"{seconds(retry_s)} after it{share}"
    return f"TCP last retransmitted {before} before the link was back, and again {after}."


def _connections_table(connections: Sequence[Row]) -> PageTable:
    """Return a row for each connection across a link that came back, the latest to retransmit first."""
    columns = (
        label("Link", "link"),
        quantity("Back", "to_s", precise_seconds, "when the link was up again, since start"),
        label("Client", "client"),
        label("Server", lambda row: f"{row['server']}:{row['port']}"),
        label(
            "Open before",
            lambda row: "yes" if row["open"] else "no",
            "whether it was open when the link failed",
        ),
        quantity("Tries", "tries", number, "segments with data, SYN or FIN sent while the link was down"),
        quantity("Last try", lambda row: _since(row, "last_try_s"), _signed, "before the link was back"),
        quantity("Next try", lambda row: _since(row, "next_try_s"), _signed, "after the link was back"),
        quantity("Came through", lambda row: _since(row, "through_s"), _signed, "after the link was back"),
        label(
            "Ended", _ending, "by the first FIN or RST since the link failed, relative to when it was back"
        ),
    )
    ordered = sorted(connections, key=lambda row: (row["to_s"], -(_since(row, "next_try_s") or 0.0)))
    return table("connections", columns, ordered[:ROWS_MAX])


def _since(row: Row, name: str) -> float | None:
    """Return a time of a connection, since its link was back."""
    return None if row[name] is None else row[name] - row["to_s"]


def _ending(row: Row) -> str:
    if row["ended_s"] is None:
        return "no"
    return f"{_signed(row['ended_s'] - row['to_s'])}, {row['ended_how']} of {row['ended_by']}"


def _signed(time_s: float | None) -> str:
    return f"{'+' if time_s and time_s > 0 else ''}{seconds(time_s)}"
