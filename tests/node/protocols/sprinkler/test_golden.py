"""Golden scenarios of Sprinkler: processes do exactly what the scripts say (paper, Fig. 2)."""

from pathlib import Path

from tests.golden import scenario
from tests.golden.script import FOLLOWED

GOLDEN = Path(scenario.__file__).parent / "sprinkler"


def test_the_scenario_has_the_nineteen_marks_of_figure_2():
    """Check eighteen messages and the cut, between proxies, in the figure's order."""
    lines = (GOLDEN / "figure-2.txt").read_text().splitlines()
    said = [line.split(maxsplit=1)[1] for line in lines if line.startswith(FOLLOWED) and "Yc" not in line]
    assert said.index("Y -> X  ADVERTISEMENT s1 3") < said.index("X -> Y  SUBSCRIBE s1 after 0")  # 1, 3
    assert said.index("Y -> Z  ADVERTISEMENT s1 3") < said.index("Z -> Y  SUBSCRIBE s1 after 0")  # 2, 4
    to_x = [f"Y -> X  EVENTS s1 [{seq}..{seq}]" for seq in range(1, 7)]
    assert [line for line in said if line.startswith("Y -> X  EVENTS")] == to_x  # 5 to 7, 11, 18, 19
    to_z = [f"Y -> Z  EVENTS s1 [{seq}..{seq}]" for seq in range(1, 4)]
    assert [line for line in said if line.startswith("Y -> Z  EVENTS")][:3] == to_z  # 8 to 10
    marks = [  # 13 to 17; 12 is the cut
        "Y -> Z  EVENTS s1 [4..4]  (lost)",
        "X -> Z  ADVERTISEMENT s1 5",
        "Z -> X  SUBSCRIBE s1 after 3",
        "X -> Z  EVENTS s1 [4..4]",
        "X -> Z  EVENTS s1 [5..5]",
    ]
    assert [line for line in said if line in marks] == marks
    subscriptions = [line for line in said if "  SUBSCRIBE" in line]
    assert len(subscriptions) == 3
