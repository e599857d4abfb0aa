"""The verdict, and the summary of runs with problems or missing measurements."""

import pyarrow as pa
import pytest

from analysis.timelines import schemas
from analysis.timelines.agreement import Agreement
from analysis.timelines.event_figures import PER_CLIENT
from analysis.timelines.run_metadata import read_metadata
from analysis.timelines.summary import RunFindings, summarize
from experiments.records.run_record import record_from_json
from tests.analysis.timelines.world import CUT, END, ZERO, S, facts_of, run_json, run_record


def delivery(**wrong):
    row = dict.fromkeys(PER_CLIENT, 0) | {"client": "r0-client-0", "stream": 0}
    return row | {"published": 100, "delivered": 100, "delivered_while_running": 100} | wrong


def link(**wrong):
    row = {"link": "r0-r1", "direction": "forward", "from_s": None, "to_s": None, "delay_p50_ms": 15.0}
    row |= {"delay_p99_ms": 15.2, "configured_delay_ms": 15.0, "loss": 0.0, "excess_p99_ms": 0.2}
    row |= {"lost_chance": 0, "lost_queue": 0, "lost_cut": 0, "lost_size": 0, "strays": 0}
    row |= {"verdict": "proven", "reason": None, "cause": None}
    row |= wrong
    return row | {"valid": row["verdict"] != "violated"}


def summary_of(run=None, **findings):
    run = run or run_record("expect=[events.lost == 0]")
    values = {"deliveries": [delivery()], "fidelity": [link()], "agreement": Agreement(True, 4)}
    values |= findings
    for name, schema in (("deliveries", schemas.DELIVERIES), ("publishers", schemas.PUBLISHERS)):
        if values.get(name) is not None:
            values[name] = pa.Table.from_pylist(values[name], schema=schema)
    return summarize(run, read_metadata(run), RunFindings(**values))


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        ({}, "passed"),
        ({"deliveries": [delivery(lost=1)]}, "failed"),
        ({"deliveries": None}, "failed"),
        ({"agreement": Agreement(False, 4, ["stream s1: …"])}, "failed"),
    ],
    ids=["expectations held", "one did not", "of something unmeasured", "packets and records disagree"],
)
def test_a_run_passes_if_its_expectations_held_and_its_records_agree(findings, expected):
    found = summary_of(**findings)
    assert found["verdict"] == expected
    assert found["agreement"]["disagreements"] == findings.get("agreement", Agreement()).disagreements


def test_a_link_that_was_not_as_configured_makes_the_run_invalid_whatever_else_failed():
    bad = link(
        direction="backward", from_s=9.0, delay_p50_ms=17.0, verdict="violated", reason="median 2 ms late"
    )
    found = summary_of(fidelity=[link(), bad], deliveries=[delivery(lost=1)])
    assert found["verdict"] == "invalid"
    assert found["fidelity"]["reasons"] == ["link r0-r1 backward from 9.0 s on: median 2 ms late"]
    assert found["fidelity"]["links"][0]["valid"] is False


def test_a_disturbed_machine_makes_the_run_invalid():
    run = run_record("expect=[]", cpu=[{"t_ns": ZERO + n * S, "busy": 1.0} for n in range(1, 10)])
    assert summary_of(run)["verdict"] == "invalid"


@pytest.mark.parametrize("outcome", [None, "crashed", "interrupted"])
def test_an_incomplete_run_crashed(outcome):
    found = summary_of(run_record("expect=[]", outcome=outcome))
    assert found["verdict"] == "crashed"
    assert found["fidelity"]["valid"] is False


def test_routes_that_change_by_themselves_are_named():
    content = run_json("expect=[]")
    content["plan"]["routing"] = {"protocol": "ospf", "hello_s": 1, "dead_s": 4}
    times_ns = (ZERO + 2 * S, ZERO + CUT + S)
    content["routes"] = [
        {"t_ns": t_ns, "region": "r2", "target": "r3", "link": link}
        for t_ns, link in zip(times_ns, ("r2-r3", "r0-r2"), strict=True)
    ]
    changed, flaps, _ = summary_of(record_from_json(content))["fidelity"]["notes"]
    assert changed == "the gateways' routes changed from 2.00 to 2.00 s, 6.00 to 6.00 s"
    assert flaps.endswith("changed by themselves from 2.00 to 2.00 s: no link changed in the 26 s before")


def test_each_link_is_listed_once_with_its_worst_period():
    rows = [link(), link(direction="backward", excess_p99_ms=1.9), link(from_s=9.0, excess_p99_ms=None)]
    (found,) = summary_of(fidelity=rows)["fidelity"]["links"]
    assert (found["link"], found["direction"], found["excess_p99_ms"]) == ("r0-r1", "backward", 1.9)


def test_an_unmeasured_link_has_a_reason():
    idle = link(delay_p50_ms=None, delay_p99_ms=None, loss=None, verdict="unproven", reason="no packets")
    found = summary_of(fidelity=[idle])
    assert found["fidelity"]["notes"] == ["r0-r1: no packets"]
    assert (found["fidelity"]["valid"], found["fidelity"]["reasons"]) == (True, [])
    assert found["fidelity"]["links"][0]["delay_p50_ms"] is None


def test_the_state_of_a_link_is_that_of_its_worst_period():
    idle = link(from_s=9.0, verdict="unproven", reason="no packet tried to cross", lost_cut=3)
    (found,) = summary_of(fidelity=[link(lost_queue=7), idle])["fidelity"]["links"]
    assert (found["state"], found["valid"]) == ("unproven", True)
    assert found["unproven"] == ["link r0-r1 forward from 9.0 s on: no packet tried to cross"]
    assert found["lost"] == {"chance": 0, "queue": 7, "cut": 3, "size": 0}
    (found,) = summary_of(fidelity=[link(verdict="violated", reason="late"), idle])["fidelity"]["links"]
    assert (found["state"], found["valid"]) == ("violated", False)


def test_an_expectation_lists_the_unproven_links_it_depends_on():
    idle = {"verdict": "unproven", "reason": "no packet tried to cross"}
    rows = [link(), link(link="r2-r3", from_s=5.0, to_s=9.0, **idle), link(link="r0-r2", **idle)]
    expect = "expect=[events.lost == 0, recovery.cut.switch_s <= 9, recovery.restore.switch_s <= 9]"
    run = run_record(expect)
    expected = summary_of(run, fidelity=rows)["expectations"]
    found = [each.get("unproven", []) for each in expected]
    during, idle_link = (
        "link r2-r3 forward from 5.0 s on: no packet tried to cross",
        "link r0-r2 forward: no packet tried to cross",
    )
    assert found[:3] == [[during, idle_link], [during], []]
    resting = {each["text"] for each in expected if each.get("unproven")}
    assert resting.isdisjoint({"events.published > 0", "events.delivered > 0"})
    route = {"fault": "restore", "affected": True, "old_way": "r0 r2", "new_way": None}
    found = summary_of(run, fidelity=rows, routes=[route])["expectations"]
    assert found[2]["unproven"] == [idle_link]
    assert summary_of(run, fidelity=rows)["verdict"] != "invalid"


def test_throughput_is_per_client_and_second_while_the_drivers_ran():
    rows = [
        delivery(
            client=client,
            stream=stream,
            delivered_while_running=14 * (100 if client == "r3-client-1" else 120),
        )
        for client in facts_of().clients
        for stream in (0, 1)
    ]
    assert summary_of(deliveries=rows)["throughput"] == {
        "events_per_s": 235.0,
        "slowest_client_events_per_s": 200.0,
        "bytes_per_s": 2350.0,
    }


def test_a_client_without_due_events_is_not_the_slowest():
    rows = [delivery(client=client, delivered_while_running=14) for client in facts_of().clients[1:]]
    found = summary_of(deliveries=rows)["throughput"]
    assert (found["events_per_s"], found["slowest_client_events_per_s"]) == (1.0, 1.0)
    nothing = [delivery(client=client, delivered_while_running=0) for client in facts_of().clients[1:2]]
    assert summary_of(deliveries=[*rows[1:], *nothing])["throughput"]["slowest_client_events_per_s"] == 0


def test_partly_absent_clients_do_not_lower_throughput():
    run = run_record("expect=[]", "faults=[{name: gone, at: 1s, leave: r0/client-0}]")
    rows = [
        delivery(client=client, delivered_while_running=0 if client == "r0-client-0" else 14)
        for client in facts_of().clients
    ]
    found = summary_of(run, deliveries=rows)["throughput"]
    assert (found["events_per_s"], found["slowest_client_events_per_s"]) == (1.0, 1.0)


def test_events_that_break_their_drivers_order_are_counted():
    rows = [{"driver": "r0-driver-0", "stream": 0, "published": 9, "unordered": 4}]
    assert summary_of(publishers=rows)["events"]["unordered_publishers"] == 4


def test_throughput_is_null_with_a_reason_if_drivers_did_not_stop():
    times = {"started_ns": ZERO - S, "zero_ns": ZERO, "stopped_ns": None, "ended_ns": ZERO + END}
    found = summary_of(run_record("expect=[]", outcome="interrupted", times=times))
    assert found["throughput"]["events_per_s"] is None
    assert "throughput: the publishers did not finish" in found["fidelity"]["notes"]


def test_without_clients_published_events_are_counted():
    run = run_record("expect=[]", "roles={proxy: 1, driver: 1, client: 0}")
    rows = [{"driver": "r0-driver-0", "stream": 0, "published": 9, "unordered": 0}]
    found = summary_of(run, deliveries=[], publishers=rows)
    assert found["events"]["published"] == 9
    assert "throughput: there are no clients" in found["fidelity"]["notes"]
