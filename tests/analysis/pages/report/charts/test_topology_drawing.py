"""The topology's drawing shows the graph's structure, and no label covers another one or a region."""

from dataclasses import replace
from itertools import combinations

import pytest

from analysis.pages.report.charts.topology_drawing import RADIUS, TopologyDrawing, drawing
from analysis.pages.report.formatting import EN_DASH
from analysis.pages.report.run_reader import AnalysedRun
from experiments.loader import load_experiment
from experiments.records.run_record import RunRecord
from testbed.planning import make_plan
from topologies.drawing.layout import LabelBox, LabelledLine, layout, place_labels
from topologies.loader import load_topology

SHIPPED = ("link-failure", "link-failure-ring", "link-failure-grid", "star-outages")


def drawn(experiment: str) -> TopologyDrawing:
    """Return the drawing of a run of this experiment whose faults were applied as planned."""
    loaded = load_experiment(experiment)
    plan = make_plan(loaded, load_topology(loaded.topology), seed=1, links_kind="relay")
    return drawing(AnalysedRun(RunRecord(plan), {}, (), (), (), (), ()))


def boxes(of: TopologyDrawing) -> list[LabelBox]:
    """Return the boxes that must not be covered: labels and regions."""
    regions = [LabelBox(region.x, region.y, 2 * region.half, 2 * RADIUS) for region in of.regions]
    return regions + [link.label for link in of.links if link.lines or link.marks]


@pytest.mark.parametrize("experiment", SHIPPED)
def test_no_label_covers_another_one_or_a_region(experiment: str) -> None:
    found = drawn(experiment)
    assert any(link.disturbed for link in found.links)
    for one, other in combinations(boxes(found), 2):
        assert not one.shared(other), (one, other)
    for box in boxes(found):
        assert box.width / 2 <= box.x <= found.width - box.width / 2
        assert box.height / 2 <= box.y <= found.height - box.height / 2


def test_a_flapping_link_has_one_mark() -> None:
    (flapping,) = [link for link in drawn("link-failure-ring").links if link.name == "r3-r4"]
    assert flapping.marks == ("✕ flap", f"11.0{EN_DASH}14.7\u00a0s")
    assert flapping.disturbed.count("flap") == 3


def test_properties_of_all_regions_are_shown_once() -> None:
    assert drawn("star-outages").inside == "1\u00a0proxy, 1\u00a0driver, 1\u00a0client"


def test_a_grid_is_in_rows_and_columns() -> None:
    edges = [(n, n + 1) for n in range(9) if (n + 1) % 3] + [(n, n + 3) for n in range(6)]
    assert [(round(x, 2), round(y, 2)) for x, y in layout(9, edges)] == [
        (column / 2, row / 2) for row in range(3) for column in range(3)
    ]


def test_a_line_is_horizontal_and_a_ring_is_a_circle() -> None:
    line = layout(5, [(0, 1), (1, 2), (2, 3), (3, 4)])
    assert [y for _, y in line] == [0.5] * 5
    assert [x for x, _ in line] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    ring = layout(6, [(n, (n + 1) % 6) for n in range(6)])
    assert len({(round(x, 2), round(y, 2)) for x, y in ring}) == 6
    assert (0.5, 0.5) not in ring


def test_the_papers_four_regions_are_as_in_its_figure() -> None:
    assert layout(4, list(combinations(range(4), 2))) == ((0, 0), (0, 1), (1, 0), (1, 1))


@pytest.mark.parametrize("count", [0, 1, 2, 60])
def test_any_number_of_regions_has_distinct_places(count: int) -> None:
    found = layout(count, [(0, n) for n in range(1, count)])
    assert len(set(found)) == count
    assert all(0 <= v <= 1 for point in found for v in point)


def test_a_label_moves_from_the_middle_of_its_link_to_avoid_another() -> None:
    traversal = [LabelledLine(0, 0, 100, 100, 30, 15), LabelledLine(0, 100, 100, 0, 30, 15)]
    first, second = place_labels(traversal, (), (100, 100))
    assert not first.shared(second)
    alone = replace(traversal[0], x2=100, y2=0)
    assert place_labels([alone], (), (100, 100))[0].x == 50
