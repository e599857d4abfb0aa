"""Faults within regions: clients with few neighbours, many clients, and a proxy that half of them cannot
reach.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from experiments.loader import load_experiment
from tests.virtual_runs import simulated, summary_of

pytestmark = pytest.mark.slow

BASE = (
    "topology=two-regions", "captures=none", "duration=14s", "drain=20s", "workload.rate=100/s",
    "parameters={advertisement_period: 500ms, flush_interval: 100ms, view_size: 4, fanout: 2}",
)  # fmt: skip
PROMISED = (
    "events.lost == 0", "events.duplicated == 0", "events.out_of_order == 0", "events.corrupted == 0",
    "convergence.stalled == 0",
)  # fmt: skip

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a function that runs such an experiment in virtual time and returns the summary."""

    def run_one(*overrides: str) -> dict[str, Any]:
        expected = f"expect=[{', '.join(PROMISED)}]"
        experiment = load_experiment("link-failure", [*BASE, "faults=[]", expected, *overrides])
        return summary_of(simulated(experiment, tmp_path))

    return run_one


def unmet(summary: dict[str, Any]) -> list[str]:
    return [f"{each['text']}: {each['value']}" for each in summary["expectations"] if not each["held"]]


def kept_from(proxy: str, *others: str) -> str:
    names = ", ".join(f"r0/{other}" for other in others)
    return f"faults=[{{name: half, at: 3s, separate: r0/{proxy}, from: [{names}], for: 6s}}]"


def clients(*numbers: int) -> list[str]:
    return [f"client-{number}" for number in numbers]


def test_clients_with_two_neighbours_of_many_get_all_events(run: Run) -> None:
    few = "parameters={advertisement_period: 500ms, flush_interval: 100ms, view_size: 2, fanout: 2}"
    roles = "roles={proxy: 1, driver: 1, client: 24, configuration: 1}"
    summary = run(few, roles, "duration=8s")
    assert unmet(summary) == []
    assert summary["events"]["delivered"] == 48 * summary["events"]["published"]


def test_a_proxy_that_no_client_can_reach_is_waited_for(run: Run) -> None:
    """Separate the clients from the proxy by a fault."""
    roles = "roles={proxy: 1, driver: 1, client: 4, configuration: 1}"
    summary = run(roles, kept_from("proxy-0", *clients(0, 1, 2, 3)))
    assert unmet(summary) == []
    assert 6_000 <= summary["latency"]["max_ms"] <= 8_000


def test_clients_that_cannot_reach_their_proxy_get_all_events_soon_from_others(run: Run) -> None:
    roles = "roles={proxy: 1, driver: 1, client: 8, configuration: 1}"
    summary = run(roles, kept_from("proxy-0", *clients(*range(4))))
    assert unmet(summary) == []
    assert summary["events"]["delivered"] == 16 * summary["events"]["published"]
    assert summary["latency"]["max_ms"] < 3_000  # long before they hear the proxy again


def test_a_client_separated_from_most_others_gets_all_events_from_the_rest(run: Run) -> None:
    names = ", ".join(f"r0/{other}" for other in ("proxy-0", *clients(1, 2, 3, 4, 5)))
    faults = f"faults=[{{at: 3s, separate: r0/client-0, from: [{names}]}}]"
    summary = run("roles={proxy: 1, driver: 1, client: 12, configuration: 1}", faults)
    assert unmet(summary) == []


@pytest.mark.parametrize(
    ("proxy", "others"),
    [
        ("proxy-0", ["driver-0", *clients(0, 1)]),
        ("proxy-1", ["proxy-2", "configuration-0", *clients(0, 1)]),
    ],
    ids=["head", "middle and tail"],
)
def test_a_replica_that_half_of_its_region_cannot_reach_loses_no_event(
    run: Run, proxy: str, others: list[str]
) -> None:
    roles = "roles={proxy: 3, driver: 1, client: 4, configuration: 1}"
    assert unmet(run(roles, kept_from(proxy, *others))) == []
