"""Lines at the prompt, as faults of an experiment's file."""

import pytest
from pydantic import TypeAdapter

from experiments.faults.kinds import Faults
from testbed.shell.fault_commands import CommandError, candidates, fault_documents, usage

PROCESSES = {"r2-proxy-0": "r2/proxy-0"}
NAMES = {
    "regions": ["r0", "r1", "r2"],
    "links": ["r2-r3", "backup"],
    "processes": ["r2/proxy-0"],
    "faults": ["cut-1"],
}
SAID = {
    "cut r2 r3": {"cut": ["r2", "r3"]},
    "cut r2-r3": {"cut": "r2-r3"},
    "set backup loss 1% for 2s": {"set": "backup", "loss": "1%", "for": "2s"},
    "cut New-York-R1 for 5s": {"cut": "New-York-R1", "for": "5s"},
    "restore New-York-R1": {"restore": "New-York-R1"},
    "cut r2 r3 down forward for 5s": {
        "cut": ["r2", "r3"],
        "mode": "down",
        "direction": "forward",
        "for": "5s",
    },
    "isolate r2 backward": {"isolate": "r2", "direction": "backward"},
    "partition r0 r1|r2 r3 for 2s": {"partition": [["r0", "r1"], ["r2", "r3"]], "for": "2s"},
    "flap r0 r1 down 1s up 2s for 9s": {"flap": ["r0", "r1"], "down": "1s", "up": "2s", "for": "9s"},
    "restore r2 r3": {"restore": ["r2", "r3"]},
    "restore cut-1": {"restore": "cut-1"},
    "separate r2-proxy-0 from r2-client-0 r2-proxy-0 forward for 5s": {
        "separate": "r2/proxy-0",
        "from": ["r2-client-0", "r2/proxy-0"],
        "direction": "forward",
        "for": "5s",
    },
    "set r0 r1 delay 9ms reorder true": {"set": ["r0", "r1"], "delay": "9ms", "reorder": True},
    "set r0 r1 reorder false": {"set": ["r0", "r1"], "reorder": False},
    "set r0 r1 of on loss 1%": {"set": ["r0", "r1"], "of": "on", "loss": "1%"},
    "set r0 r1 of r0/proxy-0 port 7000 loss 3%": {
        "set": ["r0", "r1"],
        "of": "r0/proxy-0",
        "port": 7000,
        "loss": "3%",
    },
    "kill r2/proxy-0": {"kill": "r2/proxy-0"},
    "reset r2-proxy-0": {"reset": "r2/proxy-0"},
    "fill r2-proxy-0": {"fill": "r2/proxy-0"},
    "clock r2-proxy-0 offset -3s drift 200ppm for 5s": {
        "clock": "r2/proxy-0",
        "offset": "-3s",
        "drift": "200ppm",
        "for": "5s",
    },
    "throttle r2-proxy-0 cpu 20% memory 100MB": {"throttle": "r2/proxy-0", "cpu": "20%", "memory": "100MB"},
    "restart r2-proxy-0": {"restart": "r2/proxy-0"},
}


@pytest.mark.parametrize(("line", "document"), SAID.items())
def test_a_line_equals_a_fault_of_a_file(line, document):
    word, _, given = line.partition(" ")
    assert fault_documents(word, given, PROCESSES) == [document]
    TypeAdapter(Faults).validate_python([{"at": "1s", **document}])


def test_several_processes_can_be_named_at_once():
    assert fault_documents("stop", "r0/proxy-0 r2-proxy-0", PROCESSES) == [
        {"stop": "r0/proxy-0"},
        {"stop": "r2/proxy-0"},
    ]


@pytest.mark.parametrize(
    ("line", "why"),
    {
        "cut": "lacks its target",
        "cut r0 r1 down sideways": "does not know sideways",
        "cut r0 r1 for": "lacks the value of for",
        "cut r0 r1 for [": "cannot read [ as the value of for",
        "cut r0 r1 for @2s": "cannot read @2s as the value of for",
        "cut r0 r1 down down": "has its mode twice",
        "cut r0 r1 down delay 3ms": "does not know delay",
        "block r0/proxy-0 from new true": "lacks the value of from",
        "kill": "lacks its target",
    }.items(),
)
def test_an_invalid_line_is_answered_with_the_error_and_the_syntax(line, why):
    word, _, given = line.partition(" ")
    with pytest.raises(CommandError) as raised:
        fault_documents(word, given, PROCESSES)
    assert str(raised.value).startswith(f"{word} {why}")
    assert str(raised.value).endswith(usage(word))


@pytest.mark.parametrize(
    ("line", "next_one"),
    {
        "cut": "backup",
        "cut backup": "down",
        "cut r0": "r1",
        "cut r0 r1": "down",
        "restore": "cut-1",
        "kill": "r2/proxy-0",
        "partition r0 r1": "|",
        "flap r0 r1": "up",
    }.items(),
)
def test_completions_offer_the_next_words(line, next_one):
    word, *before = line.split()
    assert next_one in candidates(word, before, NAMES)
