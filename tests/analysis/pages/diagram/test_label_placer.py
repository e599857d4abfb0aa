"""Labels are placed at their arrows without covering each other."""

from analysis.pages.diagram.label_placer import CHARACTER_WIDTH, LINE_HEIGHT, LabelPlacer

LEVEL = ((100.0, 100.0), (500.0, 100.0))


def places() -> LabelPlacer:
    return LabelPlacer(0.0, 0.0, 600.0, 400.0)


def test_a_label_is_above_the_middle_of_its_arrow() -> None:
    found = places().along(*LEVEL, "EVENTS")
    assert found
    assert (found.x, found.angle) == (300.0, 0.0)
    assert 100 - 2 * LINE_HEIGHT < found.y < 100


def test_labels_of_successive_arrows_do_not_overlap() -> None:
    here, text = places(), "EVENTS s2 [1..1000]"
    found = [here.along(*LEVEL, text) for _ in range(12)]
    shown = [each for each in found if each]
    assert 2 <= len(shown) < 12  # until there is no room
    for number, one in enumerate(shown):
        for other in shown[number + 1 :]:
            apart = abs(one.x - other.x) >= CHARACTER_WIDTH * len(text) * 0.9
            assert apart or abs(one.y - other.y) >= LINE_HEIGHT * 0.9


def test_a_label_follows_its_arrows_slope_and_reads_from_left_to_right() -> None:
    right = places().along((100.0, 100.0), (300.0, 150.0), "EVENTS")
    left = places().along((300.0, 100.0), (100.0, 150.0), "EVENTS")
    assert right
    assert left
    assert (round(right.angle), round(left.angle)) == (14, -14)


def test_labels_of_steep_arrows_are_horizontal() -> None:
    found = places().along((300.0, 50.0), (340.0, 350.0), "EVENTS")
    assert found
    assert found.angle == 0.0
