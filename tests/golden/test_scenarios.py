"""Golden scenarios: processes do exactly what the scripts say, as the papers describe."""

from pathlib import Path

import pytest

from tests.golden.__main__ import SYSTEMS, run

SCRIPTS = [path for system in SYSTEMS for path in sorted((Path(__file__).parent / system).glob("*.txt"))]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_scenario_gives_its_recorded_results(script):
    assert run(script) == script.read_text()
