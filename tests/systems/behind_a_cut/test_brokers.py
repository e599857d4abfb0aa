"""Brokers on real packets: a link is down for a while, and comes back before TCP gives up."""

from functools import partial

import pytest

from tests.systems.on_packets import lost_events, needs, output, run_with_cut

WRONG = ("lost", "duplicated", "out_of_order", "stray", "corrupted", "published_twice")
CUT_S = 4
PREFETCH = 1000
"""Messages that a federation link of RabbitMQ takes before it acknowledges any."""


@pytest.mark.parametrize(
    ("system", "server", "parameters"),
    [
        pytest.param(system, server, parameters, marks=needs(system))
        for system, server, parameters in (
            ("nats", "server", "{}"),
            ("nats-gateways", "server", "{}"),
            ("nats-jetstream", "server", "{leader: r1}"),
            ("redis", "master", "{}"),
            ("redis-streams", "server", "{master: r1}"),
            ("etcd", "member", "{leader: r1}"),
            ("rabbitmq", "broker", "{}"),
            ("rabbitmq-quorum", "node", "{}"),
        )
    ],
)
def test_queued_events_arrive_when_the_link_is_back(tmp_path, system, server, parameters):
    """Include members of etcd, which write events in chunks of HTTP, and in base64 to and from clients."""
    run = run_with_cut(
        tmp_path, system, server, parameters=parameters, cut_s=CUT_S, duration=12, rate=20, drain=60
    )
    summary = run.read_summary()
    assert summary["events"]["published"] > 600
    assert {each: summary["events"][each] for each in WRONG} == dict.fromkeys(WRONG, 0)
    assert summary["events"]["unordered_publishers"] == 0
    assert summary["recovery"]["cut"]["switch_s"] > CUT_S, "nothing goes round"
    assert summary["agreement"]["held"] is True
    assert (summary["agreement"]["disagreements"], summary["agreement"]["left_out"]) == ([], [])
    assert summary["latency"]["p50_ms"] > 0
    record = run.read_run()
    assert all(record.versions[need.name] for need in record.plan.programs.needs)
    if system == "etcd":
        said = [text for text in output(run, "r2-member-0") if "became candidate" in text]
        assert said, "it does not hear the leader"


class TestRabbitmq:
    pytestmark = needs("rabbitmq")
    run = staticmethod(
        partial(run_with_cut, system="rabbitmq", server="broker", rate=20, cut_s=CUT_S, drain=60)
    )

    def test_a_reopened_link_repeats_unacknowledged_events(self, tmp_path):
        parameters = "{heartbeat: 1s, reconnect_s: 1, connect: 2s}"
        run = self.run(tmp_path, parameters=parameters, duration=14)
        for host in ("r1-broker-0", "r2-broker-0"):
            assert any("missed heartbeats from client" in line for line in output(run, host))
        events = run.read_summary()["events"]
        assert (events["lost"], events["out_of_order"], events["stray"]) == (0, 0, 0)
        assert events["duplicated"] <= 2 * PREFETCH

    def test_events_confirmed_by_a_broker_survive_it(self, tmp_path):
        faults = "{at: 3s, kill: r0/broker-0}, {at: 4s, restart: r0/broker-0}"
        run = self.run(tmp_path, topology="two-regions", duration=25, faults=faults)
        ends = [each.exit for each in run.read_run().processes if each.name == "r0/broker-0"]
        assert [end.signal for end in ends if end is not None][:1] == [9]
        assert len(ends) == 2
        assert sum("started TCP listener" in line for line in output(run, "r0-broker-0")) == 2
        events = run.read_summary()["events"]
        assert events["published"] > 700
        assert (events["lost"], events["stray"], events["published_twice"]) == (0, 0, 0)

    def test_events_missed_by_a_subscriber_are_not_due_after_its_restart(self, tmp_path):
        faults = "{at: 2s, kill: r1/subscriber-0}, {at: 3s, restart: r1/subscriber-0}"
        run = self.run(tmp_path, topology="two-regions", duration=11, faults=faults)
        events = run.read_summary()["events"]
        assert events["published"] > 300
        assert {each: events[each] for each in WRONG} == dict.fromkeys(WRONG, 0)


class TestZeromq:
    pytestmark = needs("zeromq")

    run = staticmethod(
        partial(run_with_cut, system="zeromq", server="proxy", size="2kB", rate=100, cut_s=6, duration=16)
    )

    @pytest.mark.parametrize(("high_water", "is_lossy"), [(10, True), (0, False)])
    def test_events_over_the_high_water_mark_are_lost_behind_the_link(self, tmp_path, high_water, is_lossy):
        run = self.run(tmp_path, parameters=f"{{high_water: {high_water}}}")
        summary = run.read_summary()
        assert summary["events"]["published"] > 4500
        assert (summary["agreement"]["held"], summary["agreement"]["disagreements"]) == (True, [])
        assert {summary["events"][each] for each in ("duplicated", "out_of_order", "stray")} == {0}
        behind = {(1, "r2-subscriber-0"), (2, "r1-subscriber-0")}
        assert lost_events(run).keys() == (behind if is_lossy else set())

    def test_heartbeats_close_a_silent_connection_and_its_queued_events_are_lost(self, tmp_path):
        run = self.run(tmp_path, parameters="{high_water: 0, heartbeat: 500ms, patience: 1s}")
        assert any(text.startswith("disconnected") for text in output(run, "r1-proxy-0"))
        assert run.read_summary()["events"]["lost"] > 100 * (6 - 2)
