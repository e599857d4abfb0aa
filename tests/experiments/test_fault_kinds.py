"""Every kind of fault names regions, links and processes that are checked when the file is read."""

import pytest
from pydantic import TypeAdapter, ValidationError

from experiments.faults.kinds import KIND_NAMES, KINDS, Faults
from experiments.loader import load_experiment
from topologies.errors import InputError

UNKNOWN = {
    "cut": "cut: [r0, r9]",
    "restore": "restore: [r0, r9]",
    "set": "set: [r0, r9], delay: 5ms",
    "isolate": "isolate: r9",
    "partition": "partition: [[r0], [r9]]",
    "flap": "flap: [r0, r9], down: 1s, up: 1s, for: 4s",
    "separate": "separate: r9/proxy-0, from: [r9/proxy-1]",
    "block": "block: r9/proxy-0, from: [r0/proxy-0]",
    "clock": "clock: r9/proxy-0, offset: 3s",
    "throttle": "throttle: r9/proxy-0, cpu: 20%",
    "slow-disk": "slow-disk: r9/proxy-0, sync: 5ms",
}
"""A fault of each kind on a region that four-regions lacks; other kinds name a process alone."""


@pytest.mark.parametrize("kind", KIND_NAMES)
def test_an_unknown_region_is_refused(kind):
    fault = UNKNOWN.get(kind, f"{kind}: r9/proxy-0")
    with pytest.raises(InputError, match=r"r9"):
        load_experiment("link-failure", [f"faults=[{{name: it, at: 5s, {fault}}}]", "expect=[]"])


@pytest.mark.parametrize("kind", KINDS)
def test_no_kind_has_the_name_of_another_kinds_field(kind):
    names = {field.alias or name for name, field in kind.model_fields.items()}
    assert names & {*KIND_NAMES} == {kind.kind}


read = TypeAdapter(Faults).validate_python


def test_an_unnamed_fault_gets_its_kind_and_number_as_name():
    faults = read(
        [
            {"at": "1s", "cut": ["r0", "r1"]},
            {"at": "2s", "isolate": "r2"},
            {"at": "3s", "cut": ["r0", "r2"]},
            {"at": "4s", "restore": "cut-1", "name": "mend"},
        ]
    )
    assert [fault.name for fault in faults] == ["cut-1", "isolate-1", "cut-2", "mend"]


def test_a_name_equal_to_a_generated_one_is_refused():
    with pytest.raises(ValidationError, match=r"the name cut-2 is taken by faults\.0"):
        read([{"at": "1s", "isolate": "r0", "name": "cut-2"}, *[{"at": "1s", "cut": ["r0", "r1"]}] * 2])


@pytest.mark.parametrize(
    ("fault", "kind", "target"),
    [
        ({"cut": ["r2", "r3"]}, "cut", "r2-r3"),
        ({"restore": ["r2", "r3"]}, "restore", "r2-r3"),
        ({"restore": "cut"}, "restore", "cut"),
        ({"set": ["r2", "r3"], "loss": "1%"}, "set", "r2-r3"),
        ({"isolate": "r2"}, "isolate", "r2"),
        ({"partition": [["r0", "r1"], ["r2"]]}, "partition", "r0 r1 | r2"),
        ({"flap": ["r2", "r3"], "up": "1s", "down": "2s", "for": "9s"}, "flap", "r2-r3"),
        ({"kill": "r2/proxy-0"}, "kill", "r2/proxy-0"),
    ],
)
def test_every_kind_has_its_target(fault, kind, target):
    (read_fault,) = read([{"at": "1s", **fault}])
    assert (read_fault.kind, read_fault.target, read_fault.at_us) == (kind, target, 1_000_000)


def test_their_number_is_bounded():
    with pytest.raises(ValidationError, match="at most 1000"):
        read([{"at": "1s", "cut": ["r0", "r1"]}] * 1001)
