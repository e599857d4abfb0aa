"""Whether a machine will carry a run is said before it starts, by how busy earlier runs kept it."""

import json
import os
import platform
from pathlib import Path
from typing import Any

import pytest

from experiments.planned.plan import Plan, plan_to_json
from testbed.forecast import forecast, takes_per_s
from tests.plans import plan_named

PROCESSORS = os.cpu_count() or 1


def plan(*overrides: str) -> Plan:
    return plan_named("star-outages", *overrides)


def ran(folder: Path, of: Plan, busy: float, **fields: Any) -> None:
    """Write an earlier run with this processor load."""
    number = len(list(folder.iterdir()))
    run: dict[str, Any] = {
        "plan": plan_to_json(of),
        "machine": {"hostname": platform.node(), "cpus": PROCESSORS},
        "outcome": "completed",
        "times": {"zero_ns": 0, "stopped_ns": 10 * 10**9},
        "cpu": [{"t_ns": second * 10**9, "busy": busy} for second in range(10)],
    }
    path = folder / f"20260101T0000{number:02d}Z-star" / "run.json"
    path.parent.mkdir()
    path.write_text(json.dumps(run | fields))


def test_a_batch_is_taken_once_by_every_proxy_and_client() -> None:
    # 4 drivers make a batch every 50 ms each; 4 proxies and 4 clients take it.
    assert takes_per_s(plan("parameters.flush_interval=50ms")) == 4 * 20 * 8
    assert takes_per_s(plan("workload.rate=5/s")) == 4 * 5 * 8
    closed = plan("workload={event_size: 10B, closed_loop: true}")
    assert takes_per_s(closed) is None


def test_a_forecast_is_proportional_to_earlier_runs(tmp_path: Path) -> None:
    for busy in (0.28, 0.3, 0.9):
        ran(tmp_path, plan(), busy)
    found = forecast(plan("roles.client=6"), tmp_path)
    assert found is not None
    assert found.busy == pytest.approx(0.3 * 28 / 8)
    assert found.runs == 3
    warning = found.warning() or ""
    assert f"need about 105% of its {PROCESSORS} processors, based on 3 earlier runs here" in warning
    less = forecast(plan("roles.client=2"), tmp_path)
    assert less is not None
    assert less.warning() is None


@pytest.mark.parametrize(
    "fields",
    [
        {"machine": {"hostname": "another", "cpus": PROCESSORS}},
        {"machine": {"hostname": platform.node(), "cpus": PROCESSORS + 1}},
        {"machines": [{"name": "h0", "hosts": []}]},
        {"outcome": "crashed"},
        {"cpu": []},
        {"times": {}},
    ],
)
def test_runs_of_other_machines_are_ignored(tmp_path: Path, fields: dict[str, Any]) -> None:
    ran(tmp_path, plan(), 0.9, **fields)
    (tmp_path / "20260101T000099Z-torn").mkdir()
    (tmp_path / "20260101T000099Z-torn" / "run.json").write_text("{")
    assert forecast(plan(), tmp_path) is None
