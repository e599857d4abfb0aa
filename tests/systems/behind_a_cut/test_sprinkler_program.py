"""Sprinkler's nodes as programs, on real packets: their markers show the same events as their codec."""

from collections import Counter
from itertools import permutations
from pathlib import Path

import pyarrow as pa
import pytest

from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap.streams import HostCapture, extract_messages
from analysis.messages.searched import messages_of
from analysis.schemas import MESSAGES
from experiments.records.rundir import RunDirectory
from node.core.message_layout import Codec
from node.protocols.sprinkler.messages import CODEC
from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("sprinkler-program", always=True)

EXPERIMENT = """\
name: as-programs
topology: three-regions
system: sprinkler-program
roles:
  r0: {proxy: 2, driver: 1, client: 1, configuration: 1}
  default: {proxy: 1, driver: 1, client: 1}
workload: {event_size: 100B, rate: 100/s}
duration: 5s
faults:
  - {name: cut, at: 1s, cut: [r1, r2], for: 3s}
"""
CARRYING = ("EVENTS", "SPARSE_EVENTS", "PUBLISH")
"""Messages with events' bytes."""
BETWEEN = ("src", "sport", "dst", "dport", "direction", "stream")


@pytest.fixture(scope="module")
def the_run(tmp_path_factory) -> RunDirectory:
    return run_on_packets(tmp_path_factory.mktemp("programs"), EXPERIMENT)


def test_no_event_is_lost_and_packets_agree_with_the_clients_records(the_run):
    summary = the_run.read_summary()
    events = summary["events"]
    assert events["published"] > 1200
    assert events["delivered"] == 3 * events["published"]
    for broken in ("lost", "duplicated", "out_of_order", "corrupted", "stray"):
        assert events[broken] == 0, broken
    assert summary["agreement"]["held"] is True
    assert summary["agreement"]["left_out"] == []
    recovery = summary["recovery"]["cut"]
    assert recovery["affected_pairs"] == 2
    assert 0 < recovery["switch_s"] <= recovery["catch_up_s"]


def test_markers_show_the_events_that_the_codec_reads_on_each_connection(the_run):
    plan = the_run.read_run().plan
    addresses = {host.name: host.address for host in plan.hosts}
    markers = messages_of(plan)
    assert isinstance(markers, MarkerSearch)
    new = Counter[int]()
    behind = [addresses[f"{region}-proxy-0"] for region in ("r1", "r2")]
    for process in plan.processes:
        [path] = the_run.captures.glob(f"{process.host}-*.pcap")
        address = addresses[process.host]
        decoded = messages(path, HostCapture(str(path), process.host, address, plan.port), CODEC)
        marked = messages(path, HostCapture(str(path), process.host, address, None), markers)
        carrying = [row for row in decoded if row["type"] in CARRYING]
        markers_only = Counter(map(each, marked))
        markers_only.subtract(one for row in carrying for one in every(row))
        assert min(markers_only.values(), default=0) >= 0
        broken_off = {(row[0], row[2]) for row in +markers_only}
        assert broken_off <= set(permutations(behind)), "the cut broke a message off"
        if process.role == "proxy":
            new += Counter(
                row["stream"] for row in marked if row["type"] == "NEW_EVENT" and row["direction"] == "in"
            )
    published = the_run.read_summary()["events"]["published"]
    assert new.total() == published, "each publication came to its proxy once, and nothing else is called new"


def messages(path: Path, capture: HostCapture, known: Codec | MarkerSearch) -> list[dict]:
    found: list[pa.RecordBatch] = []
    extract_messages(capture, known, lambda table, rows: found.append(rows) if table == "messages" else None)
    return pa.Table.from_batches(found, MESSAGES).to_pylist()


def each(row: dict) -> tuple:
    return (*(row[name] for name in BETWEEN), row["first_seq"])


def every(row: dict) -> list[tuple]:
    """Return the events of a message. Requests to publish are numbered like the publisher's events."""
    first = row["request"] if row["type"] == "PUBLISH" else row["first_seq"]
    assert row["covered"] in {None, row["count"]}, "nothing was collected"
    return [each(row | {"first_seq": seq}) for seq in range(first, first + row["count"])]
