"""A run that does not fit into this machine is refused before it starts."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from experiments.planned.plan import Plan
from testbed import resources
from testbed.capturing.capture_commands import BUFFER_KIB, BUFFER_KIB_MIN, BUFFERS_SHARE, buffer_kib
from testbed.errors import MachineError
from testbed.resources import PROCESSES_PER_PROCESSOR_MAX, check_resources, needed_bytes, smaller_buffers
from tests.plans import plan_named

GIB = 1 << 30


def plan(clients: int) -> Plan:
    """Return the plan of the main job with this many clients in each of its four regions."""
    return plan_named("link-failure", f"roles.client={clients}")


def available(monkeypatch: pytest.MonkeyPatch, size_bytes: int) -> None:
    memory = SimpleNamespace(available=size_bytes)
    monkeypatch.setattr(resources.psutil, "virtual_memory", lambda: memory)


@pytest.fixture(autouse=True)
def _machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a machine of 2 processors and 24 GB."""
    monkeypatch.setattr(resources.os, "sched_getaffinity", lambda _: {0, 1})
    available(monkeypatch, 20 * GIB)
    monkeypatch.setattr(resources, "memory_bytes", lambda: 24 * 10**9)


def test_the_main_job_and_a_hundred_processes_fit_with_full_buffers() -> None:
    for clients in (1, 23):
        check_resources(plan(clients))
        assert smaller_buffers(plan(clients)) is None


def test_a_thousand_processes_on_two_processors_are_refused_with_the_remedy() -> None:
    most = 2 * PROCESSES_PER_PROCESSOR_MAX
    said = rf"1,016 processes are too many for 2 processors, .* at most {most}"
    with pytest.raises(MachineError, match=said):
        check_resources(plan(250))


def test_plans_beyond_the_free_memory_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    some = plan(23)
    available(monkeypatch, needed_bytes(some) - 1)
    with pytest.raises(MachineError, match=r"108 processes and \d+ captures need about [\d,]+ MiB of memory"):
        check_resources(some)
    check_resources(replace(some, captures=()))


def test_buffers_of_captures_never_take_more_than_a_part_of_the_memory() -> None:
    memory = 24 * 10**9
    for captures in (0, 1, 8, 100, 300, 1_002):
        each_kib = buffer_kib(captures, memory)
        assert BUFFER_KIB_MIN <= each_kib <= BUFFER_KIB
        assert captures * each_kib << 10 <= memory // BUFFERS_SHARE
    assert buffer_kib(100, memory) == BUFFER_KIB
    assert buffer_kib(100, GIB) < BUFFER_KIB


def test_smaller_buffers_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "memory_bytes", lambda: 2 * GIB)
    assert "not 8,192" in str(smaller_buffers(plan(23)))
