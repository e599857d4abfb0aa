"""The table of transfers of a synthetic link failure, around its two faults.

Every region's proxy sends its events to the others and to its clients. When the link is cut, the messages on
it are lost, then the proxies at its ends subscribe at the first region's; when it is back, at each other
again.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.schemas import TRANSFERS
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.report_scenario import ZERO_NS, Scenario

PERIOD_S = 0.05
BATCH = 1000
LOST_S = 0.4  # so long proxies go on sending into a cut
LAN_S = 0.002
WAN_S = 0.04
Row = dict[str, Any]


def write_transfers(directory: RunDirectory, scenario: Scenario) -> None:
    """Write the table as `cutset analyze` does."""
    rows = sorted(_transfers(scenario), key=lambda row: row["t_ns"])
    path = directory.table("transfers")
    path.mkdir(parents=True)
    pq.write_table(pa.Table.from_pylist(rows, TRANSFERS), path / "part-00000.parquet")


def message(sent_s: float, sender: str, receiver: str, name: str, **content: Any) -> Row:
    """Return a row of TRANSFERS; `took_s` in the content is its duration, None if it was lost."""
    took_s = content.pop("took_s", LAN_S)
    sent_ns = ZERO_NS + round(sent_s * 1e9)
    complete_ns = None if took_s is None else sent_ns + round(took_s * 1e9)
    row: Row = dict.fromkeys(TRANSFERS.names)
    return row | {
        "t_ns": sent_ns,
        "sender": sender,
        "receiver": receiver,
        "src": "10.0.0.2",
        "sport": 7000,
        "dst": "10.1.0.2",
        "dport": 40_000,
        "connection": 0,
        "stream_offset": 0,
        "length": 100,
        "t_sent_ns": sent_ns,
        "t_left_ns": sent_ns,
        "t_arrived_ns": complete_ns,
        "t_complete_ns": complete_ns,
        "fate": "lost" if took_s is None else "arrived",
        "type": name,
        "retransmitted": took_s is None,
        **content,
    }


def events(sent_s: float, sender: str, receiver: str, stream: int, first_seq: int, **content: Any) -> Row:
    """Return a batch of BATCH events."""
    return message(
        sent_s,
        sender,
        receiver,
        "EVENTS",
        stream=stream,
        first_seq=first_seq,
        count=BATCH,
        covered=BATCH,
        kind=0,
        **content,
    )


def _transfers(scenario: Scenario) -> Iterator[Row]:
    regions = scenario.regions
    ends = frozenset(scenario.cut_ends)
    for at_s in np.arange(scenario.cut_s - 1.5, scenario.restore_s + 4.5, PERIOD_S).tolist():
        if scenario.cut_s + 4.5 < at_s < scenario.restore_s - 1.5:
            continue  # nothing of it is near a fault
        cut = scenario.fault and scenario.cut_s <= at_s < scenario.restore_s
        for stream, origin in enumerate(regions):
            first_seq = 1 + round(at_s / PERIOD_S) * BATCH
            for other in regions:
                crosses = cut and {origin, other} == ends
                if other != origin and not (crosses and at_s > scenario.cut_s + LOST_S):
                    took_s = None if crosses else WAN_S
                    yield events(
                        at_s, f"{origin}-proxy-0", f"{other}-proxy-0", stream, first_seq, took_s=took_s
                    )
            for client in ("client-0", "client-1"):
                yield events(at_s, f"{origin}-proxy-0", f"{origin}-{client}", stream, first_seq)
                yield message(
                    at_s + 0.01,
                    f"{origin}-{client}",
                    f"{origin}-proxy-0",
                    "NOTIFY",
                    advertised=[{"stream": stream, "cnt": first_seq + BATCH - 1}],
                )
    if scenario.fault:
        yield from _switches(scenario)


def _switches(scenario: Scenario) -> Iterator[Row]:
    """Yield the subscriptions of the detour and of the return."""
    helper, one, other = scenario.regions[0], *scenario.cut_ends
    for region, origin in ((one, other), (other, one)):
        stream = scenario.regions.index(origin)
        at_s = scenario.switched_s.get(origin, scenario.cut_s + 0.9) - 0.1
        ways = (
            (at_s, f"{helper}-proxy-0", f"{origin}-proxy-0"),
            (scenario.restore_s + 0.3, f"{origin}-proxy-0", f"{helper}-proxy-0"),
        )
        for switch_s, to, away in ways:
            mine = f"{region}-proxy-0"
            yield message(switch_s, mine, to, "SUBSCRIBE", stream=stream, cnt=round(at_s), took_s=WAN_S)
            lost = away.startswith(origin) and switch_s < scenario.restore_s
            yield message(switch_s, mine, away, "UNSUBSCRIBE", stream=stream, took_s=None if lost else WAN_S)
