"""`--set` reaches every field, and an error in its value names the override instead of a line of the file."""

import pytest

from experiments.loader import load_experiment
from experiments.model import Experiment
from tests.refusals import refusal


def load(*overrides: str) -> Experiment:
    return load_experiment("link-failure", overrides)


def error_of(*overrides: str) -> str:
    return refusal(load, *overrides)


def test_an_override_may_set_a_field_missing_in_the_file():
    experiment = load("drain=3s", "parameters.port=9000")
    assert (experiment.drain_us, experiment.all_parameters()["port"]) == (3_000_000, 9000)


def test_items_of_lists_are_named_by_number_or_name():
    experiment = load("faults.cut.at=20s", "faults.1.at=42s")
    assert [fault.at_us for fault in experiment.faults] == [20_000_000, 42_000_000]


def test_values_are_yaml():
    assert load("roles={proxy: 1, client: 3}").roles == {"default": {"proxy": 1, "client": 3}}
    assert load("description=").description == ""
    assert load("description=a = b").description == "a = b"


def test_null_removes_a_field():
    experiment = load("workload.rate=null", "workload.closed_loop=true", "paper=null", "faults.restore=null")
    assert experiment.workload.rate_per_s is None
    assert experiment.paper is None
    assert [fault.name for fault in experiment.faults] == ["cut"]


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("workload.rat=5", "--set workload.rat=5: workload.rat: unknown field: did you mean rate?"),
        ("workload.rate=5", "--set workload.rate=5: workload.rate: 5 has no unit"),
        ("faults.ct.at=7s", "--set faults.ct.at=7s: faults.ct: there is no such item: did you mean cut?"),
        ("faults.9.at=7s", "--set faults.9.at=7s: faults.9: there is no such item: known are cut, restore"),
        ("name.x=1", "--set name.x=1: name.x: name has no fields"),
        ("workload.=1", "--set workload.=1: workload.: is not a path such as workload.rate"),
        ("duration", "--set duration: should be path=value, such as workload.rate=50000/s"),
        ("roles={proxy: 1", "--set roles={proxy: 1:1: not valid YAML"),
        ("topology=nowhere", "--set topology=nowhere: topology: nowhere: no topology of this name"),
    ],
)
def test_errors_name_the_override(override, said):
    assert error_of(override).startswith(said)


@pytest.mark.parametrize(
    ("faults", "how"),
    [
        ("[{name: a, at: 5s, cut: [r0, r1]}, {name: b, at: 70s, restore: a}]", "fault b: --set faults.b.at"),
        ("[{at: 5s, cut: [r0, r1]}, {at: 70s, cut: [r1, r2]}]", "fault cut-2: --set faults.1.at"),
    ],
)
def test_a_fault_after_the_end_is_named_with_the_override_that_moves_it(faults, how):
    assert error_of(f"faults={faults}", "expect=[]").endswith(
        f"the end of the run, 60 s ({how}=\u2026 moves it)"
    )


def test_an_error_caused_by_an_override_elsewhere_has_its_line_in_the_file():
    assert "link-failure.yaml:13: faults.0.cut: three-regions has no region r3" in error_of(
        "topology=three-regions"
    )
    assert "no fault is named 'cut'" in error_of("faults=[]")


def test_their_number_is_bounded():
    assert error_of(*["seed=1"] * 201) == "--set: given more than 200 times"
