"""Events during a run: the clients' records, as the live page gets them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.live.recorded import LiveRead
from analysis.live.view import LiveView
from experiments.loader import load_experiment
from experiments.records.run_record import record_to_json
from experiments.records.rundir import RunDirectory
from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from testbed.planning import make_plan
from testbed.runner.run_control import planned_record
from testbed.sweeps import plain
from tests.analysis.timelines.world import ZERO, S
from topologies.loader import load_topology

MS = 1_000_000
NOW = ZERO + 20 * S
EXPERIMENT = """\
name: bridges
topology: two-regions
system: {system}
roles: {{broker: 1, publisher: 1, subscriber: 1}}
workload: {{event_size: 100B, rate: 10/s}}
duration: 20s
"""
SYSTEM = """\
name: ours
parameters: {{port: 4500}}
contract: {contract}
roles:
  broker: {{traits: [server], run: [a]}}
  publisher: {{traits: [publisher], run: [a]}}
  subscriber: {{traits: [subscriber], run: [a]}}
"""
AT_MOST_ONCE = "{published: sent, since: subscription, order: stream, delivery: at-most-once}"
BROKER, PUBLISHER, CLIENTS = "r0-broker-0", "r0-publisher-0", ("r0-subscriber-0", "r1-subscriber-0")


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., RunDirectory]:
    """Return a function that makes a starting run of a system with a contract."""

    def made(contract: str = AT_MOST_ONCE) -> RunDirectory:
        (tmp_path / "ours.yaml").write_text(SYSTEM.format(contract=contract))
        (tmp_path / "bridges.yaml").write_text(EXPERIMENT.format(system="./ours.yaml"))
        experiment = load_experiment(str(tmp_path / "bridges.yaml"))
        topology = load_topology(experiment.topology)
        plan = make_plan(experiment, topology, seed=1, links_kind="relay")
        run = RunDirectory(tmp_path / "run")
        run.make()
        described = {"experiment": plain(experiment), "topology": plain(topology)}
        run.run_json.write_text(json.dumps(record_to_json(planned_record(run, plan, described))))
        for host in (PUBLISHER, *CLIENTS):
            run.host_deliveries(host).write_bytes(encode_file_header())
            write(run, host, RecordKind.SESSION, 0, ZERO - S)
        for client in CLIENTS:
            write(run, client, RecordKind.SUBSCRIBING, 0, ZERO - S)
            write(run, client, RecordKind.SUBSCRIBED, 0, ZERO - S)
        return run

    return made


def write(run: RunDirectory, host: str, kind: RecordKind, seq: int, t_ns: int) -> None:
    count = int(kind in {RecordKind.PUBLISHED, RecordKind.DELIVERED})
    with run.host_deliveries(host).open("ab") as file:
        file.write(encode_record(DeliveryRecord(0, count, seq, t_ns, 0, 0, kind, count)))


def publish(run: RunDirectory, seqs: range, *, lost: tuple[int, ...] = (), wait_ns: int = 30 * MS) -> None:
    """Record ten events per second with their arrivals, except those that the last client loses."""
    for seq in seqs:
        sent_ns = ZERO + seq * 100 * MS
        write(run, PUBLISHER, RecordKind.PUBLISHED, seq, sent_ns)
        for client in CLIENTS:
            if client == CLIENTS[0] or seq not in lost:
                write(run, client, RecordKind.DELIVERED, seq, sent_ns + wait_ns)


def watching(run: RunDirectory, now_ns: Callable[[], int] = lambda: NOW) -> tuple[LiveView, LiveRead]:
    view = LiveView(run, now_ns)
    reading = LiveRead(
        run, view.metadata, view.take, on_ready=lambda: None, on_end=lambda: None, now_ns=now_ns
    )
    view.handle({"did": "running", "zero_ns": ZERO, "duration_us": 20 * 10**6})
    return view, reading


def shown(view: LiveView, what: str, region: str) -> dict[float, float]:
    return {row[0]: row[1] for row in view.board.whole()[what].get(region, [])}


def test_throughput_and_latency_are_shown_while_records_grow(make: Callable[..., RunDirectory]) -> None:
    run = make()
    times_ns = [ZERO + 4 * S + 150 * MS]
    view, reading = watching(run, lambda: times_ns[-1])
    publish(run, range(1, 41))
    reading.read()
    assert max(shown(view, "throughput", "r1")) == 3.8
    times_ns.append(NOW)
    publish(run, range(41, 151))
    reading.read()
    rates, latencies = shown(view, "throughput", "r1"), shown(view, "latency", "r0")
    assert sum(rates.values()) == 150 * 5  # bins of 0.2 s
    assert {at for at, rate in rates.items() if rate == 0} == {at for at in rates if at > 15.1}
    assert len(latencies) == 76
    assert all(25 < latency < 31 for latency in latencies.values())
    assert view.status()["behind_s"] < 1


def test_a_lost_event_does_not_delay_the_latency_of_later_ones(make: Callable[..., RunDirectory]) -> None:
    run = make()
    view, reading = watching(run)
    publish(run, range(1, 151), lost=tuple(range(40, 60)))
    reading.read()
    latencies = shown(view, "latency", "r0")
    assert max(latencies) > 14.5
    assert not [at for at in latencies if 4.1 < at < 5.7]


def test_lossless_contracts_wait_for_all_events(make: Callable[..., RunDirectory]) -> None:
    run = make(AT_MOST_ONCE.replace("at-most-once", "exactly-once"))
    view, reading = watching(run)
    publish(run, range(1, 151), lost=(40,))
    reading.read()
    assert max(shown(view, "latency", "r0")) < 4
    write(run, CLIENTS[1], RecordKind.DELIVERED, 40, ZERO + 16 * S)
    reading.read()
    assert max(shown(view, "latency", "r0")) > 14.5


def test_collected_events_delay_nothing_and_do_not_count(make: Callable[..., RunDirectory]) -> None:
    run = make(AT_MOST_ONCE.replace("at-most-once", "exactly-once"))
    view, reading = watching(run)
    publish(run, range(1, 151), lost=(*range(40, 43), *range(60, 63)))
    for seq, count, kind in ((40, 3, RecordKind.TOMBSTONE), (60, 1, RecordKind.SPARSE)):
        record = DeliveryRecord(0, count, seq, ZERO + 7 * S, 0, 0, kind, covered=3)
        with run.host_deliveries(CLIENTS[1]).open("ab") as file:
            file.write(encode_record(record))
    reading.read()
    assert max(shown(view, "latency", "r0")) > 14.5
    assert sum(shown(view, "throughput", "r1").values()) == (150 - 3 - 2) * 5  # bins of 0.2 s


def test_acknowledged_events_without_delivery_show_no_latency(
    make: Callable[..., RunDirectory],
) -> None:
    run = make(AT_MOST_ONCE.replace("published: sent", "published: acknowledged"))
    view, reading = watching(run)
    publish(run, range(1, 151))
    reading.read()
    assert sum(shown(view, "throughput", "r0").values()) == 150 * 5
    assert shown(view, "latency", "r0") == {}


def test_acknowledged_events_that_a_server_records_show_latency(make: Callable[..., RunDirectory]) -> None:
    run = make(AT_MOST_ONCE.replace("published: sent", "published: acknowledged"))
    run.host_deliveries(BROKER).write_bytes(encode_file_header())
    view, reading = watching(run)
    publish(run, range(1, 151))
    for seq in range(1, 151):
        write(run, BROKER, RecordKind.PUBLISHED, seq, ZERO + seq * 100 * MS + 10 * MS)
    reading.read()
    assert all(19 < latency < 21 for latency in shown(view, "latency", "r0").values())
    assert max(shown(view, "latency", "r0")) > 14.5


def test_an_invalid_record_file_is_reported_once_and_ends_reading(make: Callable[..., RunDirectory]) -> None:
    run = make()
    view, _ = watching(run)
    run.host_deliveries(CLIENTS[0]).write_bytes(b"no such record at all")
    reading = LiveRead(run, view.metadata, view.take, on_ready=lambda: None, on_end=lambda: None)
    reading.start()
    reading.finish()
    reading.wait()
    assert CLIENTS[0] in str(reading.failure)
    assert not reading.ended
