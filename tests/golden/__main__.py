"""Rewrite the results in golden scenarios, after a change of behaviour was reviewed: `python -m tests.golden
FILE…`.
"""

import sys
from pathlib import Path

from tests.golden import content_scenario, overlay_scenario, scenario, space_scenario
from tests.golden.script import ScriptPlayer, read, with_results

SYSTEMS: dict[str, type[ScriptPlayer]] = {
    "can": space_scenario.Scenario,
    "meghdoot": content_scenario.Scenario,
    "scribe": overlay_scenario.Scenario,
    "sprinkler": scenario.Scenario,
}


def run(path: Path) -> str:
    """Run a script and return it with its results. The name of its folder is the system."""
    text = path.read_text()
    return with_results(text, SYSTEMS[path.absolute().parent.name](read(text)).play())


if __name__ == "__main__":
    for name in sys.argv[1:]:
        Path(name).write_text(run(Path(name)))
