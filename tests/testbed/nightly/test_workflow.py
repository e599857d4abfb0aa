"""The workflow for GitHub runs an existing suite, and caches the history of nights."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from experiments.suite import read_suite
from testbed.campaign.nights.night_options import HISTORY

FILE = Path(__file__).parents[3] / ".github" / "workflows" / "nightly.yaml"


@pytest.fixture(scope="module")
def night() -> dict[str, Any]:
    return yaml.safe_load(FILE.read_text())["jobs"]["night"]


def step(night: dict[str, Any], uses: str) -> dict[str, Any]:
    return next(step["with"] for step in night["steps"] if step.get("uses", "").startswith(uses))


def test_the_workflows_suite_exists_and_fits_its_time_limit(night):
    assert "|| 'quick'" in night["env"]["SUITE"]
    assert read_suite("quick").suite.budget_us / 60e6 < night["timeout-minutes"]


def test_the_history_is_restored_and_saved_after_any_night(night):
    restored, saved = step(night, "actions/cache/restore"), step(night, "actions/cache/save")
    assert restored["path"] == saved["path"] == str(HISTORY)
    assert restored["key"] == saved["key"]
    assert saved["key"].startswith(restored["restore-keys"])
    steps = night["steps"]
    run = next(number for number, step in enumerate(steps) if "cutset nightly" in step.get("run", ""))
    assert all(later["if"] == "${{ !cancelled() }}" for later in steps[run + 1 :])
