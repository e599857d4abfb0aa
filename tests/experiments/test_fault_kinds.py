"""Every kind of fault: its line in docs/faults.md is a fault, and the regions that it names are checked."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import TypeAdapter, ValidationError

from experiments.faults.environment import StateFault
from experiments.faults.kinds import KINDS, Faults
from experiments.faults.processes import ProcessFault
from experiments.loader import load_experiment
from experiments.planned.changes import ProcessAction
from testbed.backends import simulated_network
from testbed.runner import running
from topologies.errors import InputError

PAGE = Path(__file__).parents[2] / "docs" / "faults.md"


def documented() -> Iterator[str]:
    """Yield the faults in the first columns of the page's tables, in the form of a file.

    A kind without a value has that of the kind before it.
    """
    for cell in re.findall(r"^\| (`.+?`) \|", PAGE.read_text(), re.MULTILINE):
        fault, target = "", ""
        for field in re.findall(r"`([^`]+)`", cell):
            name, _, value = field.partition(": ")
            if name not in KINDS:
                fault += f", {field}"
                continue
            if fault:
                yield fault
            target = value or target
            fault = f"{name}: {target}"
        if target:
            yield fault


DOCUMENTED = tuple(documented())


def test_every_kind_is_documented():
    assert {fault.partition(":")[0] for fault in DOCUMENTED if "r2" in fault} == {*KINDS}


@pytest.mark.parametrize("fault", DOCUMENTED)
def test_an_unknown_region_is_refused(fault):
    for region in re.finditer(r"\br\d\b", fault):
        misspelt = f"{fault[: region.start()]}r9{fault[region.end() :]}"
        with pytest.raises(InputError, match=r"has no region r9|there is no process r9/"):
            load_experiment("link-failure", [f"faults=[{{name: it, at: 5s, {misspelt}}}]", "expect=[]"])


def test_every_action_has_a_meaning_for_real_processes_and_in_virtual_time():
    assert {*running.ACTIONS, *running.STARTING} == {*ProcessAction}
    only_real = [name for name, kind in KINDS.items() if kind.only_real]
    assert {*ProcessAction} - {*simulated_network.ACTIONS} == {
        *only_real,
        *(f"un{name}" for name in only_real),
    }


@pytest.mark.parametrize("kind", [kind for kind in KINDS.values() if issubclass(kind, ProcessFault)])
def test_every_kind_on_a_process_has_its_actions(kind):
    ProcessAction(kind.kind)
    if issubclass(kind, StateFault):
        assert ProcessAction(f"un{kind.kind}").ends_another


@pytest.mark.parametrize(("name", "kind"), KINDS.items())
def test_no_kind_has_the_name_of_another_kinds_field(name, kind):
    names = {field.alias or name for name, field in kind.model_fields.items()}
    assert names & {*KINDS} == {name}


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
