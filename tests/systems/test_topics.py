"""Programs with topics on real packets: each subscriber gets its own topics; wrong subscriptions are
detected.
"""

import shutil

import pyarrow.parquet as pq
import pytest
import yaml

from experiments.records.rundir import RunDirectory
from node.core.deliveries import RecordKind, read_records
from systems.names import FOLDER
from tests.systems.on_packets import needs, run_on_packets

CUT = """\
name: topics-behind-a-cut
topology: three-regions
system: ./mosquitto
roles:
  r0: {broker: 1, publisher: 1, subscriber: 1, greedy: 1, lazy: 1}
  default: {broker: 1, publisher: 1, subscriber: 1}
workload: {kind: topics, event_size: 100B, rate: 20/s, topics: 6, subscriptions: {each: 5}}
duration: 5s
faults:
  - {name: cut, at: 2s, cut: [r1, r2]}
"""
CHANGING = """\
name: changing-topics
topology: two-regions
system: SYSTEM
contract: {settle: 5s}
roles: {SERVER: 1, publisher: 1, subscriber: 1}
workload:
  {kind: topics, event_size: 100B, rate: 30/s, topics: 6, publishers: 2, subscriptions: {each: 3, change: 1s}}
duration: 4s
"""
LEFT_OUT = "t0"


def with_wrong_clients(folder) -> None:
    """Return Mosquitto with one role that subscribes to every topic and one that silently leaves a topic
    out.
    """
    system = folder / "mosquitto"
    shutil.copytree(FOLDER / "mosquitto", system)
    text = (system / "subscriber.py").read_text()
    wanted = "elif topics := subscriber.topics:"
    assert wanted in text
    fewer = f"elif topics := [each for each in subscriber.topics if each != '{LEFT_OUT}']:"
    (system / "lazy.py").write_text(text.replace(wanted, fewer))
    (system / "greedy.py").write_text(text.replace('f"+/{topic}"', '"#"'))
    declared = yaml.safe_load((system / "system.yaml").read_text())
    subscriber = declared["roles"]["subscriber"]
    for name in ("greedy", "lazy"):
        run = [each.replace("subscriber.py", f"{name}.py") for each in subscriber["run"]]
        declared["roles"][name] = {**subscriber, "run": run}
    (system / "system.yaml").write_text(yaml.safe_dump(declared, sort_keys=False))


@pytest.fixture(scope="module")
def cut(tmp_path_factory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("topics")
    with_wrong_clients(folder)
    return run_on_packets(folder, CUT)


def rows_of(run: RunDirectory, role: str) -> list[dict]:
    return [row for row in pq.read_table(run.table("deliveries")).to_pylist() if f"-{role}-" in row["client"]]


def follows(run: RunDirectory) -> set[tuple[str, int]]:
    """Yield each host with each stream that it must get."""
    processes = run.read_run().plan.processes
    return {(process.host, each.number) for process in processes for each in process.subscriptions}


cuts = [pytest.mark.usefixtures("cut"), *needs("mosquitto", always=True)]


class TestCut:
    pytestmark = cuts

    def test_each_subscriber_gets_its_topics_and_nothing_else(self, cut):
        rows = rows_of(cut, "subscriber")
        got = {(row["client"], row["stream"]) for row in rows if row["delivered"]}
        assert got == {each for each in follows(cut) if "subscriber" in each[0]}
        assert len(got) == 3 * 5
        assert {row["stray"] for row in rows} == {0}

    def test_events_that_do_not_cross_a_cut_are_lost_to_their_followers_behind_it(self, cut):
        owner = {stream.number: stream.region for stream in cut.read_run().plan.streams}
        lost = {(row["client"], row["stream"]): row["lost"] for row in rows_of(cut, "subscriber")}
        behind = {each for each in lost if {each[0][:2], owner[each[1]]} == {"r1", "r2"}}
        assert behind
        assert all((lost[each] > 0) == (each in behind) for each in lost), lost

    def test_too_many_subscriptions_give_stray_events_and_too_few_lose_events(self, cut):
        theirs, rows = follows(cut), rows_of(cut, "greedy")
        assert all(bool(row["stray"]) == ((row["client"], row["stream"]) not in theirs) for row in rows)
        assert any(row["stray"] for row in rows)
        left_out = [row for row in rows_of(cut, "lazy") if row["stream"] == 0]
        assert {(row["client"], row["stream"]) for row in left_out} & theirs
        assert all(row["lost"] == row["published"] > 20 for row in left_out)

    def test_a_run_with_wrong_subscriptions_fails(self, cut):
        summary = cut.read_summary()
        broken = {each["text"] for each in summary["expectations"] if not each["held"]}
        assert broken == {"events.stray == 0"}, "losses break nothing that Mosquitto promises"
        assert summary["agreement"]["held"] is not False


@pytest.mark.parametrize(
    ("system", "server"),
    [
        pytest.param("mosquitto", "broker", marks=needs("mosquitto", always=True)),
        pytest.param("nats", "server", marks=needs("nats")),
        pytest.param("redis", "master", marks=needs("redis")),
        pytest.param("zenoh", "router", marks=needs("zenoh")),
        pytest.param("etcd", "member", marks=needs("etcd")),
        pytest.param("zeromq", "proxy", marks=needs("zeromq")),
    ],
)
def test_subscriptions_change_while_events_arrive(tmp_path, system, server):
    run = run_on_packets(tmp_path, CHANGING.replace("SYSTEM", system).replace("SERVER", server))
    summary = run.read_summary()
    assert summary["events"]["stray"] == summary["events"]["duplicated"] == 0
    assert summary["subscriptions"]["unconfirmed"] == 0
    answered = (RecordKind.SUBSCRIBED, RecordKind.UNSUBSCRIBED)
    for process in run.read_run().plan.processes:
        records = read_records(run.host_deliveries(process.host).read_bytes())[0]
        told = [(each.stream, each.kind == answered[0]) for each in records if each.kind in answered]
        assert sorted(told) == sorted((each.number, each.on) for each in process.subscriptions)
    got = {(row["client"], row["stream"]) for row in rows_of(run, "subscriber") if row["delivered"]}
    assert got == follows(run)
