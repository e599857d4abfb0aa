"""RabbitMQ on real packets, federated and as a cluster with quorum queues: a link fails, a broker dies."""

import json

import pyarrow.parquet as pq
import pytest

from experiments.records.rundir import RunDirectory
from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("rabbitmq")

CUT_S = 4
PREFETCH = 1000
"""Messages that a federation link takes before it acknowledges any."""
EXPERIMENT = """\
name: {name}
topology: {topology}
system: {system}
parameters: {parameters}
roles: {roles}
workload: {{event_size: 100B, rate: 20/s}}
duration: {duration}
drain: 60s
faults: [{faults}]
"""
SERVERS = {"rabbitmq": "broker", "rabbitmq-quorum": "node"}


def run_of(folder, system: str, **given: str) -> RunDirectory:
    """Run a publisher and a subscriber in each region, with the link between r1 and r2 down for a while."""
    usual = {
        "name": system,
        "topology": "three-regions",
        "parameters": "{}",
        "roles": f"{{{SERVERS[system]}: 1, publisher: 1, subscriber: 1}}",
        "duration": "10s",
        "faults": f"{{name: cut, at: 2s, cut: [r1, r2], for: {CUT_S}s}}",
    }
    return run_on_packets(folder, EXPERIMENT.format(system=system, **(usual | given)))


def said(run: RunDirectory, host: str) -> str:
    """Return a server's output."""
    return "\n".join(json.loads(line).get("text", "") for line in run.log(host).read_text().splitlines())


def repeated(run: RunDirectory) -> dict[tuple[str, int], int]:
    """By client and stream."""
    rows = pq.read_table(run.table("deliveries")).to_pylist()
    return {(row["client"], row["stream"]): row["duplicated"] for row in rows if row["duplicated"]}


def all_came(run: RunDirectory) -> None:
    events = run.read_summary()["events"]
    assert events["published"] > 400
    wrong = ("lost", "out_of_order", "stray", "corrupted", "published_twice")
    assert {each: events[each] for each in wrong} == dict.fromkeys(wrong, 0)
    assert run.read_summary()["agreement"]["disagreements"] == []
    assert run.read_summary()["agreement"]["held"] is True


@pytest.mark.parametrize("system", SERVERS)
def test_queued_events_arrive_when_the_link_is_back(tmp_path, system):
    run = run_of(tmp_path, system)
    all_came(run)
    assert repeated(run) == {}
    assert run.read_summary()["agreement"]["left_out"] == []
    assert run.read_summary()["recovery"]["cut"]["switch_s"] > CUT_S, "nothing goes round"
    assert all(run.read_run().versions[need.name] for need in run.read_run().plan.programs.needs)


def test_a_link_that_is_given_up_brings_again_what_it_had_not_acknowledged_and_loses_nothing(tmp_path):
    parameters = "{heartbeat: 1s, reconnect_s: 1, connect: 2s}"
    run = run_of(tmp_path, "rabbitmq", parameters=parameters, duration="14s")
    for host in ("r1-broker-0", "r2-broker-0"):
        assert "missed heartbeats from client" in said(run, host)
    all_came(run)
    found = repeated(run)
    assert set(found) <= {("r1-subscriber-0", 2), ("r2-subscriber-0", 1)}
    assert all(count <= PREFETCH for count in found.values())


def test_events_confirmed_by_a_broker_survive_it(tmp_path):
    faults = "{name: end, at: 3s, kill: r0/broker-0}, {name: again, at: 4s, restart: r0/broker-0}"
    run = run_of(tmp_path, "rabbitmq", topology="two-regions", duration="25s", faults=faults)
    ends = [each.exit for each in run.read_run().processes if each.name == "r0/broker-0"]
    assert [end.signal for end in ends if end is not None][:1] == [9]
    assert len(ends) == 2
    assert said(run, "r0-broker-0").count("started TCP listener") == 2
    events = run.read_summary()["events"]
    assert events["published"] > 700
    assert (events["lost"], events["stray"], events["published_twice"]) == (0, 0, 0)


def test_events_missed_by_a_subscriber_are_not_due_after_its_restart(tmp_path):
    faults = "{name: end, at: 2s, kill: r1/subscriber-0}, {name: again, at: 3s, restart: r1/subscriber-0}"
    run = run_of(tmp_path, "rabbitmq", topology="two-regions", duration="11s", faults=faults)
    all_came(run)
    assert repeated(run) == {}
