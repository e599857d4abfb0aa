"""Arrivals and departures in numbers: validation, and the schedule of a seed."""

from collections import Counter

import pytest

from experiments.loader import read_experiment
from experiments.planned.changes import ProcessAction
from testbed.planning import make_plan
from tests.refusals import refusal
from topologies.errors import InputError
from topologies.loader import load_topology

EXPERIMENT = """
name: churning
topology: four-regions
system: {system}
roles: {roles}
workload: {workload}
duration: 100s
captures: none
{churn}
"""
SCRIBE = {
    "system": "scribe",
    "roles": "{publisher: 1, member: 25}",
    "workload": "{kind: topics, event_size: 10B, rate: 10/s, topics: 4, subscriptions: {each: 2}}",
}
SPRINKLER = {
    "system": "sprinkler",
    "roles": "{proxy: 1, driver: 1, client: 10}",
    "workload": "{event_size: 10B, rate: 100/s}",
}


def read(tmp_path, churn, given=SCRIBE):
    path = tmp_path / "churning.yaml"
    path.write_text(EXPERIMENT.format(churn=churn, **given))
    return read_experiment(str(path), []).experiment


def planned(tmp_path, churn, given=SCRIBE, seed=1):
    experiment = read(tmp_path, churn, given)
    return make_plan(experiment, load_topology(experiment.topology), seed=seed, links_kind="auto")


def changes(tmp_path, churn, **more):
    return planned(tmp_path, churn, **more).changes


def assert_in_turn(plan):
    """Check that only running processes end and only stopped ones start."""
    runs = {process.name: process.name not in plan.joining for process in plan.processes}
    for change in plan.changes:
        starts = change.action in (ProcessAction.JOIN, ProcessAction.RESTART)
        assert runs[change.process] != starts
        runs[change.process] = starts


def test_the_given_number_of_processes_arrives_within_the_period(tmp_path):
    found = changes(tmp_path, "arrivals: [{role: member, count: 20, from: 10s, to: 30s}]")
    assert len({change.process for change in found}) == len(found) == 20
    assert {change.action for change in found} == {ProcessAction.JOIN}
    assert all(10_000_000 <= change.at_us <= 30_000_000 for change in found)
    assert sum(change.at_us < 20_000_000 for change in found) in range(4, 17)


def test_arrivals_may_be_at_once_or_evenly_spaced(tmp_path):
    once = "arrivals: [{role: member, count: 9, from: 5s, distribution: at-once}]"
    assert {change.at_us for change in changes(tmp_path, once)} == {5_000_000}
    even = "arrivals: [{role: member, count: 5, from: 10s, to: 50s, distribution: even}]"
    times = [change.at_us for change in changes(tmp_path, even)]
    assert times == [10_000_000, 20_000_000, 30_000_000, 40_000_000, 50_000_000]


def test_at_a_rate_intervals_are_exponential_and_no_process_arrives_twice(tmp_path):
    counts = [
        len(changes(tmp_path, "arrivals: [{role: member, rate: 0.4/s, from: 10s}]", seed=seed))
        for seed in range(20)
    ]
    assert 32 < sum(counts) / len(counts) < 40  # 36 in 90 s
    assert len(set(counts)) > 5
    many = changes(tmp_path, "arrivals: [{role: member, rate: 100/s}]")
    assert len(many) == len({change.process for change in many}) == 100
    assert len(changes(tmp_path, "arrivals: [{role: member, rate: 100/s, count: 7}]")) == 7


@pytest.mark.parametrize(("how", "action"), [("leave", ProcessAction.LEAVE), ("crash", ProcessAction.KILL)])
def test_a_process_leaves_permanently_only_once(tmp_path, how, action):
    plan = planned(tmp_path, f"departures: [{{role: member, how: {how}, count: 100}}]")
    assert len({change.process for change in plan.changes}) == len(plan.changes) == 100
    assert {change.action for change in plan.changes} == {action}


def test_a_process_with_a_time_away_returns_and_may_leave_again(tmp_path):
    plan = planned(tmp_path, "departures: [{role: member, rate: 5/s, away: {from: 2s, to: 5s}}]")
    assert_in_turn(plan)
    gone, back = {}, []
    for change in plan.changes:
        if change.action is ProcessAction.LEAVE:
            gone[change.process] = change.at_us
        else:
            back.append(change.at_us - gone.pop(change.process))
    assert len(back) > 300
    assert all(2_000_000 <= us <= 5_000_000 for us in back)
    assert max(Counter(change.process for change in plan.changes).values()) > 4


@pytest.mark.parametrize(
    ("span", "least", "most"), [("{mean: 20s}", 17, 23), ("{from: 5s, to: 25s}", 14, 16)]
)
def test_each_process_ends_one_lifetime_after_its_start(tmp_path, span, least, most):
    churn = f"""
arrivals: [{{role: member, count: 40, from: 1s, to: 10s}}]
departures: [{{role: member, lifetime: {span}, away: {{mean: 4s}}}}]
"""
    lives = []
    for seed in range(5):
        plan = planned(tmp_path, churn, seed=seed)
        assert_in_turn(plan)
        since = {process.name: 0 for process in plan.having("subscriber") if process.name not in plan.joining}
        for change in plan.changes:
            if change.action is ProcessAction.LEAVE:
                lives.append((change.at_us - since.pop(change.process)) / 1e6)
            else:
                since[change.process] = change.at_us
        lives += [(plan.duration_us - us) / 1e6 for us in since.values()]
    ended = [life for life in lives if life < 60]
    assert len(ended) > 1_000
    assert least - 4 < sum(ended) / len(ended) < most


def test_no_process_of_overlapping_groups_leaves_twice(tmp_path):
    churn = """
arrivals:
  - {role: member, count: 30, to: 50s}
  - {role: member, rate: 1/s}
departures:
  - {role: member, how: crash, lifetime: {mean: 15s}, away: {mean: 5s}}
  - {role: member, rate: 2/s, count: 60}
"""
    plan = planned(tmp_path, churn)
    assert_in_turn(plan)
    assert [each.name for each in plan.churn] == ["arrivals-1", "arrivals-2", "departures-1", "departures-2"]
    for each in plan.churn:
        of_group = [change for change in plan.changes if change.fault == each.name]
        assert each.count + each.returns == len(of_group)
        assert (each.at_us, each.until_us) == (of_group[0].at_us, of_group[-1].at_us)


def test_the_same_seed_gives_the_same_schedule(tmp_path):
    churn = "departures: [{role: member, rate: 1/s, away: {mean: 9s}}]"
    assert changes(tmp_path, churn) == changes(tmp_path, churn)
    assert changes(tmp_path, churn) != changes(tmp_path, churn, seed=2)


def test_processes_with_faults_of_their_own_are_excluded_from_churn(tmp_path):
    churn = """
departures: [{role: member, count: 99, how: crash}]
faults: [{at: 99s, stop: r0/member-3}]
"""
    found = [change for change in changes(tmp_path, churn) if change.process == "r0/member-3"]
    assert [change.action for change in found] == [ProcessAction.STOP]


def test_random_faults_spare_processes_with_churn(tmp_path):
    churn = """
arrivals: [{role: member, count: 60, to: 80s}]
nemesis: {kinds: [crash], faults: 40}
"""
    plan = planned(tmp_path, churn)
    assert_in_turn(plan)
    assert sum(change.action is ProcessAction.KILL for change in plan.changes) > 10


def test_sprinkler_clients_may_arrive_and_leave_and_proxies_may_not(tmp_path):
    plan = planned(tmp_path, "departures: [{role: client, count: 8}]", SPRINKLER)
    assert {process.role for process in plan.processes if process.name in named(plan)} == {"client"}
    with pytest.raises(InputError, match=r"departures.0.role: proxy of sprinkler may not come and go while"):
        read(tmp_path, "departures: [{role: proxy, count: 2}]", SPRINKLER)


def named(plan):
    return {change.process for change in plan.changes}


@pytest.mark.parametrize(
    ("kind", "asked", "said"),
    [
        ("arrivals", "role: publisher, count: 2", "only member and forwarder may"),
        ("arrivals", "", "arrivals.0: should say how many: count, or rate"),
        ("departures", "", "departures.0: should say how many: count, rate, or a lifetime"),
        ("arrivals", "count: 101", "arrivals.0.count: asks for more member than `roles` gives in all"),
        ("arrivals", "count: 60}, {role: member, count: 60", "arrivals.1.count: asks for more"),
        ("arrivals", "count: 2, regions: [r9]", "arrivals.0.regions.0: four-regions has no region r9"),
        ("arrivals", "role: forwarder, rate: 1/s", "`roles` gives no forwarder in all regions"),
        ("arrivals", "count: 2, from: 100s", "arrivals.0.from: is not before the end of the run, 100 s"),
        ("arrivals", "count: 2, from: 9s, to: 9s", "arrivals.0.to: is not after `from`"),
        ("arrivals", "count: 2, distribution: poisson", "poisson and a rate go together"),
        ("arrivals", "count: 2, to: 9s, distribution: at-once", "has no effect if all come"),
        ("departures", "count: 101", "departures.0.count: is more than `roles` gives of member"),
        ("departures", "lifetime: {mean: 9s, to: 9s}", "should have either mean"),
        ("departures", "lifetime: {from: 9s, to: 8s}", "lifetime.from: is more than `to`"),
        ("departures", "lifetime: {mean: 9s}, rate: 1/s", "has no effect if each has a lifetime"),
        ("departures", "count: 2, name: cut", "departures.0.name: the name cut is taken"),
        ("arrivals", "count: 26, regions: [r1]", "than `roles` gives in r1: 25"),
        ("arrivals", "count: 2, to: 101s", "arrivals.0.to: is after the end of the run, 100 s"),
        ("arrivals", "role: members, count: 2", "arrivals.0.role: scribe has no such role: did you mean m"),
    ],
)
def test_impossible_churn_is_refused_in_one_line(tmp_path, kind, asked, said):
    role = "" if "role" in asked[:4] else "role: member, "
    churn = f"{kind}: [{{{role}{asked}}}]\nfaults: [{{at: 1s, name: cut, cut: [r2, r3]}}]"
    assert said in refusal(read, tmp_path, churn)
