"""Golden scenarios: processes do exactly what the scripts say, and so what the papers describe."""

from pathlib import Path

import pytest

from tests.golden import content_scenario, overlay_scenario, scenario, space_scenario

RUNS = {
    "can": space_scenario.run,
    "meghdoot": content_scenario.run,
    "scribe": overlay_scenario.run,
    "sprinkler": scenario.run,
}
SCRIPTS = [path for system in RUNS for path in sorted((Path(__file__).parent / system).glob("*.txt"))]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_the_scenario_goes_as_written(script):
    text = script.read_text()
    assert RUNS[script.parent.name](text) == text
