"""The oracle of runs in memory agrees with the whole analysis, for correct and broken builds."""

import pytest

from analysis.pipeline import analyze_here
from experiments.hunting.case import HuntCase, HuntDisturbance
from experiments.hunting.case_experiment import experiment_of, hunt_base
from experiments.hunting.drawing import CaseGenerator
from experiments.hunting.settings import drawn_settings
from experiments.loader import load_experiment
from node.systems import build_machine
from testbed.backends import message_watcher
from testbed.backends.in_memory import simulate_in_memory
from testbed.backends.message_watcher import MessageWatcher
from testbed.backends.simulated_network import uptime_us
from testbed.backends.simulator import simulate
from testbed.campaign.hunting.oracle import judge
from testbed.planning import make_plan
from testbed.runner.run_control import prepare
from tests.node.protocols.sprinkler.readings import forgetting_repetitions, never_asking_the_proxy
from topologies.loader import load_topology

LEAVING = HuntCase(
    654596856,
    {"duration": "11500ms", "roles.proxy": 1, "workload.rate": "200/s"},
    (HuntDisturbance("leave", 4_270_000, 1_500_000, ("r2/client-0", "r2/client-1", "r2/client-2")),),
)
QUICK = HuntCase(1, {"duration": "7s", "workload.rate": "5/s", "topology": "two-regions"}, ())


def planned(name: str, case: HuntCase):
    base = hunt_base(load_experiment(name))
    topology = load_topology(case.settings.get("topology", base.topology))
    experiment = experiment_of(base, case, topology)
    return make_plan(experiment, topology, seed=case.seed, links_kind="auto"), experiment


def in_memory(name: str, case: HuntCase, build=build_machine):
    plan, experiment = planned(name, case)
    described = {"experiment": experiment.to_json(), "topology": {}}
    watcher = MessageWatcher.for_system(plan.system)
    return simulate_in_memory(plan, described, build=build, watcher=watcher)


def both(name: str, case: HuntCase, tmp_path, build=build_machine):
    """Return a judgement, and the summary of the same run with files."""
    plan, experiment = planned(name, case)
    directory = prepare(tmp_path, plan, {"experiment": experiment.model_dump(mode="json"), "topology": {}})
    simulate(directory, lambda _: None, build=build)
    return judge(in_memory(name, case, build)), analyze_here(directory, progress=lambda _: None)


def agree(judged, summary) -> bool:
    broken = {
        each["text"].split()[0].partition(".")[2] for each in summary["expectations"] if not each["held"]
    }
    return judged.figures == summary["events"] and broken - {"stalled"} == {
        each.kind for each in judged.violations if each.kind not in {"stalled", "silent", "died", "crashed"}
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", ["nemesis", "scribe-nemesis", "meghdoot-nemesis"])
def test_a_correct_system_passes_with_the_figures_of_the_analysis(name, tmp_path):
    experiment = load_experiment(name)
    base = hunt_base(experiment)
    drawing = CaseGenerator(base, experiment.nemesis, drawn_settings(base, experiment.nemesis))
    cases = (drawing.case(seed) for seed in range(100))
    case = next(
        each for each in cases if len(each.disturbances) > 2 and each.settings.get("duration") == "14s"
    )
    judged, summary = both(name, case, tmp_path)
    assert judged.violations == ()
    assert agree(judged, summary)
    assert summary["verdict"] == "passed"


MANY_WERE_AWAY = HuntCase(
    3241212926,
    {"duration": "14s", "topology": "two-regions", "workload.rate": "10/s"},
    (
        HuntDisturbance("pause", 2_700_000, 3_300_000, ("r1/publisher-0",)),
        HuntDisturbance("pause", 3_332_000, 654_000, ("r0/publisher-0",)),
        HuntDisturbance("depart", 3_373_000, 0, ("r1/peer-0",)),
        HuntDisturbance("pause", 3_374_000, 2_150_000, ("r0/subscriber-0", "r0/subscriber-1")),
        HuntDisturbance("crash", 5_251_000, 225_000, ("r1/subscriber-2",)),
    ),
)


def test_publishers_that_are_silent_while_a_system_may_still_settle_are_no_violation(tmp_path):
    """Remove all zones at once: they doubt each other's subscriptions for 7.5 s, and are recovered after 8.6
    s.
    """
    judged, summary = both("meghdoot-nemesis", MANY_WERE_AWAY, tmp_path)
    assert judged.violations == ()
    assert summary["verdict"] == "passed"


TWO_ARE_GONE = HuntCase(
    1442160416,
    {
        "duration": "18s",
        "topology": "two-regions",
        "parameters.window": 1,
        "roles.subscriber": 1,
        "workload.rate": "5/s",
    },
    (
        HuntDisturbance("die", 2_044_000, 0, ("r1/peer-0",)),
        HuntDisturbance("die", 2_045_000, 0, ("r0/peer-0",)),
    ),
)


def test_publishers_that_wait_for_a_late_acknowledgement_are_no_violation(tmp_path):
    """Remove a zone and its mirror image: subscribers restore their subscriptions after 30 s."""
    judged, _ = both("meghdoot-nemesis", TWO_ARE_GONE, tmp_path)
    assert judged.violations == ()


def test_publishers_slower_than_their_rate_are_no_violation():
    """Allow one event of 10 B in flight, and request 500 a second."""
    far = {"kind": "mesh", "regions": 2, "delays": {"from": "40ms", "to": "40ms"}}
    narrow = {
        "parameters.batch_limit": "16B",
        "parameters.window_batches": 1,
        "parameters.flush_interval": "100ms",
    }
    settings = {"duration": "14s", "topology": far, "roles.client": 1, "drain": "3s", **narrow}
    run = in_memory("nemesis", HuntCase(1, settings, ()))
    judged = judge(run)
    assert run.record.times.drained_ns is None
    assert judged.figures["lost"]
    assert judged.violations == ()


@pytest.mark.parametrize(
    ("name", "seed", "figure", "settings"),
    [
        ("nemesis", 1, "published", {"duration": "1500ms"}),
        ("meghdoot-nemesis", 1538474950, "delivered", {"duration": "10200ms", "roles.subscriber": 1}),
    ],
    ids=["few events are due", "no delivery is due"],
)
def test_a_run_without_deliveries_is_a_violation_only_of_an_expectation(name, seed, figure, settings):
    settings |= {"workload.rate": "0.5/s", "topology": "two-regions", "expect": [f"events.{figure} > 0"]}
    judged = judge(in_memory(name, HuntCase(seed, settings, ())))
    assert (judged.figures[figure], judged.figures["lost"]) == (0, 0)
    assert [each.kind for each in judged.violations] == [figure]


@pytest.mark.slow
def test_a_loss_is_found_by_both(tmp_path):
    judged, summary = both("nemesis", LEAVING, tmp_path, never_asking_the_proxy)
    assert "lost" in {each.kind for each in judged.violations}
    assert agree(judged, summary)
    lost = next(each for each in judged.violations if each.kind == "lost")
    assert lost.examples[0].client.startswith("r2/client-")
    assert lost.examples[0].role == "client"


@pytest.mark.slow
def test_repetitions_are_found_by_both(tmp_path):
    kill = HuntDisturbance("crash", 4_000_000, 1_000_000, ("r0/proxy-0",))
    cut = HuntDisturbance("cut", 3_500_000, 2_000_000, ("r0", "r1"))
    case = HuntCase(8, {"duration": "9s", "workload.rate": "50/s"}, (cut, kill))
    judged, summary = both("nemesis", case, tmp_path, forgetting_repetitions)
    assert [each.kind for each in judged.violations] == ["duplicated"]
    assert agree(judged, summary)


@pytest.mark.slow
def test_a_machine_that_raises_is_a_violation_that_names_it():
    def build(spec, rng):
        machine = build_machine(spec, rng)
        if spec.name == "r1/client-0":
            taken = machine.handle
            late_us = uptime_us(spec.name, 1) + 5_000_000
            machine.handle = lambda given, now_us: 1 / 0 if now_us > late_us else taken(given, now_us)
        return machine

    (violation,) = judge(in_memory("nemesis", QUICK, build)).violations
    assert violation.kind == "crashed"
    assert "ZeroDivisionError" in violation.said
    assert violation.examples[0].client == "r1/client-0"


@pytest.mark.slow
def test_a_machine_that_sends_endlessly_is_a_violation(monkeypatch):
    monkeypatch.setattr(message_watcher, "SENDS_MAX", 5_000)
    from node.core import machine as m

    def build(spec, rng):
        machine = build_machine(spec, rng)
        taken, late_us = machine.handle, uptime_us(spec.name, 1) + 5_000_000

        def handle(given, now_us):
            yield from taken(given, now_us)
            if spec.role == "client" and isinstance(given, m.Received) and now_us > late_us:
                yield m.Send(given.connection, given.messages)

        machine.handle = handle
        return machine

    assert judge(in_memory("nemesis", QUICK, build)).violations[0].kind == "crashed"
