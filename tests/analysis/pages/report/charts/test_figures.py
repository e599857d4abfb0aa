"""The PNG and SVG figures show something, are the same each time, and say when a run is invalid."""

import xml.etree.ElementTree as ET
from collections.abc import Callable

import matplotlib as mpl
import pytest
from matplotlib.image import imread

from analysis.pages.report.charts.figures import write_figures
from analysis.pages.report.run_reader import read_record
from experiments.records.rundir import RunDirectory
from topologies.palette import colour_of

pytestmark = pytest.mark.slow

Reported = Callable[[str], RunDirectory]
NAMES = ("throughput", "latency", "links", "topology")


@pytest.mark.parametrize("name", NAMES)
def test_a_png_has_every_regions_colour_in_it(reported: Reported, name: str) -> None:
    pixels = imread(reported("passed").figure(name, "png"))[..., :3]
    assert min(pixels.shape[:2]) > 400
    seen = {tuple(rgb) for rgb in (pixels[::1, ::1].reshape(-1, 3) * 255).round().astype(int)}
    wanted = {tuple(bytes.fromhex(colour_of(i)[1:])) for i in range(4)}
    # Lines that coincide cover each other: the affected regions' are on top.
    assert len(wanted & seen) >= (4 if name in {"topology", "links"} else 2)


@pytest.mark.parametrize("name", NAMES)
def test_an_svg_is_well_formed_and_has_lines(reported: Reported, name: str) -> None:
    root = ET.parse(reported("passed").figure(name, "svg")).getroot()
    assert root.tag.endswith("svg")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10


def test_drawing_again_gives_the_same_bytes(fresh_run: RunDirectory) -> None:
    record = read_record(fresh_run)
    paths = write_figures(record, fresh_run)
    first = {path.name: path.read_bytes() for path in paths}
    assert len(first) == 2 * len(NAMES)
    assert {path.name: path.read_bytes() for path in write_figures(record, fresh_run)} == first


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_of_an_invalid_run_says_so(reported: Reported, name: str) -> None:
    red = (0xB3, 0x26, 0x1E)
    corners = {
        kind: imread(reported(kind).figure(name, "png"))[:60, -400:, :3] * 255
        for kind in ("passed", "invalid")
    }
    marked = {kind: bool((corner.round() == red).all(axis=-1).any()) for kind, corner in corners.items()}
    assert marked == {"passed": False, "invalid": True}


def test_unmeasured_quantities_have_no_figure(reported: Reported) -> None:
    assert {path.name for path in reported("crashed").figures.iterdir()} == {"topology.png", "topology.svg"}


def test_settings_of_matplotlib_that_are_in_a_folder_change_nothing(fresh_run: RunDirectory) -> None:
    drawn = [path.read_bytes() for path in write_figures(read_record(fresh_run), fresh_run)]
    with mpl.rc_context({"text.usetex": True, "axes.facecolor": "red", "svg.hashsalt": "other"}):
        again = [path.read_bytes() for path in write_figures(read_record(fresh_run), fresh_run)]
        assert mpl.rcParams["text.usetex"]
    assert again == drawn
