"""Which settings are drawn, and which of them together."""

import pytest

from experiments.declared import known_system
from experiments.hunting.huntable import nemesis_of
from experiments.hunting.settings import drawn_settings, halved_periods, shortened_long_periods, small_limits
from experiments.hunting.written import hunt_base
from experiments.loader import load_experiment
from tests.experiments.hunting.drawings import cases_of, drawing_of


@pytest.mark.slow
def test_long_periods_are_drawn_short_together_so_that_they_end_within_a_run():
    drawn = [case.settings for case in cases_of("meghdoot-nemesis", 100)]
    short = [each for each in drawn if each.get("parameters.refresh") == "1875ms"]
    assert short
    assert {each.get("parameters.expire") for each in short} == {"7500ms"}
    assert {each.get("parameters.gone") for each in drawn} <= {None, "10s", "40s"}  # limits a promise


@pytest.mark.slow
def test_subscribers_also_subscribe_while_things_are_disturbed():
    drawn = [case.settings for case in cases_of("meghdoot-nemesis", 100)]
    assert 25 < sum(each.get("workload.subscriptions.within") == "6s" for each in drawn) < 75
    assert any("workload.subscriptions.change" in each for each in drawn)


def test_all_periods_are_also_half_as_long_but_for_those_of_batching():
    base, nemesis = hunt_base(load_experiment("scribe-nemesis")), load_experiment("scribe-nemesis").nemesis
    (half,) = halved_periods(base, nemesis)
    assert (half["parameters.heartbeat"], half["parameters.retransmit"]) == ("250ms", "500ms")
    assert not {f"parameters.{name}" for name in known_system(base.system).batching} & set(half)
    drawn = [drawing_of("scribe-nemesis").case(seed).settings for seed in range(60)]
    assert sum(half.items() <= each.items() for each in drawn) > 3


def test_limits_of_memory_are_drawn_where_a_run_reaches_them_unless_they_limit_what_is_promised():
    knobs = drawn_settings(hunt_base(load_experiment("nemesis")), load_experiment("nemesis").nemesis)
    assert knobs["parameters.burst_limit"] == ["1B", "256B", "4096B", "131072B", "524288B"]
    assert knobs["parameters.batch_limit"][0] == "16B"  # events have 10
    assert knobs["parameters.window_batches"] == [1, 16, 512, 2048]
    assert len(knobs["parameters.history_limit"]) == 2


@pytest.mark.slow
def test_limits_are_also_small_all_together_as_far_as_they_go_together():
    base, nemesis = hunt_base(load_experiment("nemesis")), load_experiment("nemesis").nemesis
    least, small, _ = small_limits(base, nemesis)
    assert (least["parameters.unsynced_limit"], least["parameters.burst_limit"]) == ("4096B", "1B")
    assert least["parameters.control_limit"] == "1024B"  # less would refuse every HELLO
    assert (small["parameters.control_limit"], small["workload.rate"]) == ("1024B", "50/s")
    drawn = [case.settings for case in cases_of("nemesis")]
    assert any(least.items() <= each.items() for each in drawn)


def test_programs_parameters_are_drawn_only_by_the_nemesis():
    experiment = load_experiment("link-failure-systems", ["variant=etcd"])
    base, nemesis = hunt_base(experiment), nemesis_of(experiment)
    assert (
        halved_periods(base, nemesis)
        == shortened_long_periods(base, nemesis)
        == small_limits(base, nemesis)
        == []
    )
