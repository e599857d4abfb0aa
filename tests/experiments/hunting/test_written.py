"""A case as an experiment, and what it then expects."""

import pytest

from experiments.hunting.bounds import unsurvivable_reason
from experiments.hunting.case import (
    HuntCase,
    HuntDisturbance,
    case_from_json,
    case_to_json,
)
from experiments.hunting.written import experiment_of, hunt_base
from experiments.loader import load_experiment
from tests.experiments.hunting.drawings import drawing_of
from topologies.errors import InputError
from topologies.loader import load_topology


@pytest.mark.parametrize(
    ("change", "at_fault"),
    [
        ({"kind": "quake"}, "kind"),
        ({"at_us": -1}, "at_us"),
        ({"target": [7]}, "target"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_case_that_is_none_is_one_line_with_the_field(change, at_fault):
    case = HuntCase(1, {}, (HuntDisturbance("cut", 3_000_000, 500_000, ("r0", "r1")),))
    content = case_to_json(case)
    content["disturbances"][0] |= change
    with pytest.raises(InputError) as error:
        case_from_json(content, "corpus/000001.json")
    assert at_fault in error.value.field
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("kind", "durable", "lost"),
    [
        ("power", True, "== 0"),
        ("power", False, ">= 0"),
        ("power-and-disks", True, ">= 0"),
        ("crash", False, "== 0"),
    ],
)
def test_losses_count_unless_a_region_loses_what_only_it_had(kind, durable, lost):
    experiment = load_experiment("nemesis")
    base = hunt_base(experiment)
    ground = drawing_of("nemesis").ground({})
    target = ("r0/client-0",) if kind == "crash" else ("r0",)
    disturbance = HuntDisturbance(kind, 3_000_000, 500_000, target)
    assert unsurvivable_reason([disturbance], ground) is None
    case = HuntCase(1, {"parameters.durable": durable}, (disturbance,))
    made = experiment_of(base, case, ground.topology)
    assert f"events.lost {lost}" in {each.text for each in made.expect}
    assert {"events.duplicated == 0", "events.corrupted == 0"} <= {each.text for each in made.expect}


def test_only_a_forgetting_regions_own_streams_may_lose_events():
    base = hunt_base(load_experiment("nemesis"))
    lost = HuntDisturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    case = HuntCase(1, {"workload.streams": 2}, (lost,))
    made = experiment_of(base, case, load_topology(base.topology))
    said = {each.text for each in made.expect if each.path.startswith("streams.")}
    assert said == {f"streams.{name}.lost == 0" for name in ("r1.0", "r1.1", "r2.0", "r2.1")}
    assert "events.lost >= 0" in {each.text for each in made.expect}


def test_expectations_on_a_stream_are_dropped_if_its_region_forgets_it():
    said = ["streams.r0.lost == 0", "streams.r0.duplicated == 0", "streams.r1.lost <= 5"]
    base = hunt_base(load_experiment("nemesis", [f"expect=[{', '.join(said)}]"]))
    lost = HuntDisturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    made = experiment_of(base, HuntCase(1, {}, (lost,)), load_topology(base.topology))
    texts = [each.text for each in made.expect if each.path.startswith("streams.")]
    assert texts == [*said[1:], "streams.r1.lost == 0", "streams.r2.lost == 0"]
    many = HuntCase(1, {"workload.streams": 40}, (lost,))
    none = experiment_of(hunt_base(load_experiment("nemesis")), many, load_topology(base.topology))
    assert not [each for each in none.expect if each.path.startswith("streams.")], (
        "too many streams for figures of each"
    )


@pytest.mark.parametrize(
    ("streams", "spared"), [(2, False), ([{"region": "r0", "publishers": ["r1"]}], True)]
)
def test_publishers_that_outlive_a_forgetting_region_may_repeat_unanswered_events(streams, spared):
    base = hunt_base(load_experiment("nemesis-streams"))
    lost = HuntDisturbance("power-and-disks", 3_000_000, 300_000, ("r0",))
    case = HuntCase(1, {"workload.streams": streams}, (lost,))
    said = {each.text for each in experiment_of(base, case, load_topology(base.topology)).expect}
    assert "events.lost >= 0" in said
    assert ("events.duplicated >= 0" in said) == spared != ("events.duplicated == 0" in said)
