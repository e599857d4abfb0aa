"""Findings from the facts about a machine: each problem is reported with its remedy."""

import dataclasses
import json
import sysconfig
from typing import Any

import pytest

from testbed.errors import MachineError, TestbedError
from testbed.findings import Finding, FindingState
from testbed.machines.checks import ExaminedMachine, raise_if_unfit
from testbed.machines.facts import (
    Address,
    Attempts,
    ClockReading,
    Echo,
    Facts,
    Folder,
    RunFolder,
    best_reading,
    peers,
    read_facts,
    read_time_ns,
    request,
)
from testbed.machines.findings import judge
from testbed.machines.inventory import Inventory, InventoryMachine, Shaping, Shipping, ShippingTime

OURS, OTHERS = "a" * 64, "b" * 64


def machine(number: int, **changes: Any) -> InventoryMachine:
    fields: dict[str, Any] = {
        "name": f"h{number}",
        "control": f"192.168.56.1{number}",
        "port": None,
        "user": "root",
        "key": None,
        "host_key": None,
        "experiment": f"10.10.1.1{number}",
        "links": {},
        "serves": (),
        "takes": 16,
        "folder": "/var/tmp/cutset",
    }
    return InventoryMachine(**{**fields, **changes})


def inventory(*machines: InventoryMachine) -> Inventory:
    given = machines or (machine(0), machine(1))
    return Inventory(
        "lab", "lab.yaml", given, 60_000_000, Shaping.HOSTS, 4789, Shipping(when=ShippingTime.DURING)
    )


FIT = Facts(
    python="3.11.2",
    abi=sysconfig.get_config_var("SOABI"),
    kernel="6.1.0",
    missing=(),
    attempts=Attempts(None, None, None),
    addresses={"10.10.1.10": Address("exp0", 1600, up=True)},
    echoes=(Echo("10.10.1.10", "10.10.1.11", 0.0002, 0.0003),),
    port_holder=None,
    folder=Folder(40 * 10**9, (OTHERS,), None),
    memory_bytes=8 << 30,
    processors=4,
    synchronised=True,
    runs=(),
)
CLOCK = ClockReading(1_500_000, 200_000)


def findings(**changes: Any) -> list[Finding]:
    """Return the findings about h0 with these facts changed."""
    facts = dataclasses.replace(FIT, **changes)
    return list(judge(inventory(), machine(0), facts, CLOCK, OURS))


def wrong(**changes: Any) -> Finding:
    """Return the only finding that is not good."""
    (found,) = [finding for finding in findings(**changes) if finding.state is not FindingState.GOOD]
    return found


def test_a_fit_machine_has_no_problems_and_reports_its_properties() -> None:
    found = findings()
    assert all(each.state is FindingState.GOOD and not each.problem and not each.remedy for each in found)
    assert {each.subject: each.detail for each in found} == {
        "login": "root",
        "Python": "3.11.2",
        "tools": "all",
        "links": "netem",
        "network": "10.10.1.10 exp0 1600",
        "peers": "1/1 0.2 ms",
        "clock": "+1.5 ±0.2 ms",
        "disk": "40 GB",
        "memory": "8 GiB, 4 CPU",
        "code": "another",
        "runs": "none",
    }


NO_ADDRESS = {"192.168.56.10": Address("eth0", 1500, up=True)}
SILENT = (Echo("10.10.1.10", "10.10.1.11", None, None),)
SHORT = (Echo("10.10.1.10", "10.10.1.11", 0.0002, None),)


@pytest.mark.parametrize(
    ("changes", "subject", "problem", "remedy"),
    [
        ({"abi": "cpython-39-x86_64-linux-gnu"}, "Python", "are for", "Python"),
        ({"abi": None}, "Python", "of an unknown kind", "Python"),
        ({"missing": ("tc", "tcpdump")}, "tools", "tc, tcpdump", "apt-get install iproute2 tcpdump"),
        ({"attempts": Attempts("not permitted", None, None)}, "links", "[not permitted]", "--privileged"),
        ({"attempts": Attempts(None, None, "Unknown")}, "links", "VXLAN", "modprobe"),
        ({"addresses": NO_ADDRESS, "echoes": ()}, "network", "192.168.56.10 (eth0)", "lab.yaml"),
        (
            {"addresses": {"10.10.1.10": Address("exp0", 1600, up=False)}},
            "network",
            "exp0 is down",
            "ip link set exp0 up",
        ),
        ({"port_holder": "dnsmasq (process 7)"}, "network", "4789 is used by dnsmasq", "vxlan_port:"),
        ({"echoes": SILENT}, "peers", "no answer in the experiment network from h1 (10.10.1.11)", "firewall"),
        ({"echoes": SHORT}, "peers", "no answer to packets of 1550 bytes from h1", "MTU"),
        ({"folder": Folder(10**10, (), "/x cannot be written")}, "disk", "/x cannot be written", "folder:"),
    ],
)
def test_obstacles_to_runs_are_reported_with_their_remedy(
    changes: dict[str, Any], subject: str, problem: str, remedy: str
) -> None:
    found = wrong(**changes)
    assert (found.subject, found.state) == (subject, FindingState.MISSING)
    assert problem in found.problem
    assert remedy in found.remedy


def test_a_run_is_refused_with_all_that_is_missing_anywhere() -> None:
    examined = [
        ExaminedMachine(machine(0), tuple(findings(missing=("tcpdump",)))),
        ExaminedMachine(machine(1), tuple(findings(synchronised=False, port_holder="x (process 1)"))),
    ]
    with pytest.raises(MachineError) as error:
        raise_if_unfit(examined)
    assert "h0: not installed: tcpdump -> apt-get install tcpdump" in str(error.value)
    assert "h1: UDP port 4789 is used by x" in str(error.value)
    assert "clock" not in str(error.value)
    raise_if_unfit([ExaminedMachine(machine(0), tuple(findings(synchronised=False)))])


def test_machines_probe_the_others_in_each_shared_network() -> None:
    a = machine(0, links={"r0-r1": "10.0.1.1", "r0-r2": "10.0.2.1"})
    b = machine(1, links={"r0-r1": "10.0.1.2"})
    c = machine(2, experiment=None, links={"r0-r2": "10.0.2.2"})
    assert peers(inventory(a, b, c), a) == [
        ("10.0.1.1", "10.0.1.2"),
        ("10.10.1.10", "10.10.1.11"),
        ("10.0.2.1", "10.0.2.2"),
    ]
    assert peers(inventory(a, b, c), c) == [("10.0.2.2", "10.0.2.1")]
    assert request(inventory(a, b), a)["peers"] == peers(inventory(a, b), a)


def test_the_shortest_round_trip_determines_a_clock_reading() -> None:
    slow, quick = (1_000, 90_000, 101_000), (200_000, 250_500, 201_000)
    assert best_reading([slow, quick, slow]) == ClockReading(50_000, 500)


# Answers of machines.


def said(**changes: Any) -> bytes:
    """Return the answer of a machine with these facts, and with changed fields."""
    return json.dumps({**dataclasses.asdict(FIT), "uid": 0, **changes}).encode()


def test_facts_are_parsed_unchanged() -> None:
    assert read_facts(said()) == FIT
    assert request(inventory(), machine(0))["attempts"].keys() == dataclasses.asdict(FIT.attempts).keys()


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(Facts)])
@pytest.mark.parametrize("wrong", [-1, 1.5, [1], {"x": None}, [{"own": 1}], "\ud800"])
def test_fields_of_a_wrong_type_are_refused(field: str, wrong: object) -> None:
    with pytest.raises(TestbedError, match=f"is invalid: .*{field}|is invalid: .*JSON"):
        read_facts(said(**{field: wrong}))


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"hello",
        b"\xff",
        b"[" * 100_000,
        b"[]",
        b"{}",
        said(attempts={"namespaces": None, "netem": None}),
        said(memory_bytes=10**400),
        said(addresses={}),  # but echoes from one
    ],
)
def test_an_invalid_answer_is_an_error_in_one_line(line: bytes) -> None:
    with pytest.raises(TestbedError, match="is invalid") as raised:
        read_facts(line)
    assert str(raised.value).isprintable()


@pytest.mark.parametrize("line", [b"", b"now", b"1.5", b"-1", b"9" * 5000, b"null"])
def test_an_invalid_time_is_an_error(line: bytes) -> None:
    assert read_time_ns(b"1790000000000000000") == 1_790_000_000_000_000_000
    with pytest.raises(TestbedError, match="is invalid"):
        read_time_ns(line)


@pytest.mark.parametrize(
    ("changes", "subject", "problem"),
    [
        ({"addresses": {"10.10.1.10": Address("exp0", 1500, up=True)}}, "network", "get 1450 at most"),
        ({"synchronised": False}, "clock", "unsynchronised"),
        ({"folder": Folder(10**9, (), None)}, "disk", "1 GB are free"),
        ({"memory_bytes": 1 << 30}, "memory", ""),
        ({"runs": (RunFolder("one", 5_000_000, "left"),)}, "runs", "without a controller: one"),
        ({"runs": (RunFolder("one", 5_000_000, "held"),)}, "runs", "without a controller: one"),
    ],
)
def test_notes_do_not_prevent_runs(changes: dict[str, Any], subject: str, problem: str) -> None:
    found = wrong(**changes)
    assert (found.subject, found.state) == (subject, FindingState.NOTE)
    assert problem in found.problem
