"""Golden scenarios of the proxy-level protocol: proxies say exactly what the scripts say (paper, Fig. 2)."""

from pathlib import Path

import pytest

from tests.golden import scenario

GOLDEN = Path(scenario.__file__).parent
SCRIPTS = sorted(GOLDEN.glob("sprinkler-*.txt"))


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_the_scenario_runs_as_written(script):
    commands, expected = script.read_text().split(scenario.LINE)
    assert scenario.run(commands) == expected


def test_figure_2_shows_the_papers_nineteen_marks():
    """Eighteen messages and the cut, each kind as often as in the figure."""
    transcript = (GOLDEN / "sprinkler-figure-2.txt").read_text().split(scenario.LINE)[1].splitlines()
    assert transcript[0] == "Y -> X  ADVERTISEMENT cnt 3"  # 1
    assert "Y -> Z  ADVERTISEMENT cnt 3" in transcript  # 2
    subscriptions = ["X -> Y  SUBSCRIBE after 0", "Z -> Y  SUBSCRIBE after 0", "Z -> X  SUBSCRIBE after 3"]
    assert [line for line in transcript if "  SUBSCRIBE" in line] == subscriptions  # 3, 4, 15
    to_x = [f"Y -> X  EVENTS {seq}" for seq in range(1, 7)]
    assert [line for line in transcript if line.startswith("Y -> X  EVENTS")] == to_x  # 5 to 11, 18, 19
    lost = transcript.index("Y -> Z  EVENTS 4  (lost)")  # 13
    advertised = transcript.index("X -> Z  ADVERTISEMENT cnt 5")  # 14
    resubscribed = transcript.index("Z -> X  SUBSCRIBE after 3")  # 15
    resumed = transcript.index("X -> Z  EVENTS 4")  # 16
    assert lost < advertised < resubscribed < resumed
    assert transcript[resumed + 1] == "X -> Z  EVENTS 5"  # 17
