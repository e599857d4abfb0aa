"""The PNG and SVG figures show lines, are reproducible, and mark invalid runs."""

import shutil
import xml.etree.ElementTree as ET
from collections.abc import Callable
from functools import cache
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.image import imread

from analysis.pages.report import write_report
from analysis.pages.report.charts.figures import write_figures
from analysis.pages.report.run_reader import read_record
from experiments.records.rundir import RunDirectory
from topologies.drawing.palette import colour_of

pytestmark = pytest.mark.slow

Drawn = Callable[[str], RunDirectory]
NAMES = ("throughput", "latency")
RED = (0xB3, 0x26, 0x1E)


@pytest.fixture(scope="module")
def drawn(made: Drawn, tmp_path_factory: pytest.TempPathFactory) -> Drawn:
    """Return a function that makes a scenario's run with its report and figures."""

    def run(name: str) -> RunDirectory:
        copied = RunDirectory(Path(shutil.copytree(made(name).path, tmp_path_factory.mktemp(name) / "run")))
        write_report(copied)
        return copied

    return cache(run)


def pixels(run: RunDirectory, name: str) -> np.ndarray:
    return (imread(run.figure(name, "png"))[..., :3] * 255).round()


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_has_every_regions_colour_and_lines(drawn: Drawn, name: str) -> None:
    seen = pixels(drawn("passed"), name)
    assert min(seen.shape[:2]) > 400
    wanted = [tuple(bytes.fromhex(colour_of(i)[1:])) for i in range(4)]
    found = sum(bool((seen == colour).all(axis=-1).any()) for colour in wanted)
    assert found >= 2  # lines that coincide cover each other: the affected regions' are on top
    root = ET.parse(drawn("passed").figure(name, "svg")).getroot()
    assert root.tag.endswith("svg")
    assert len(list(root.iter("{http://www.w3.org/2000/svg}path"))) > 10


@pytest.mark.parametrize("name", NAMES)
def test_a_figure_of_an_invalid_run_is_marked(drawn: Drawn, name: str) -> None:
    corners = {kind: pixels(drawn(kind), name)[:60, -400:] for kind in ("passed", "invalid")}
    marked = {kind: bool((corner == RED).all(axis=-1).any()) for kind, corner in corners.items()}
    assert marked == {"passed": False, "invalid": True}


def test_unmeasured_quantities_have_no_figure(drawn: Drawn) -> None:
    assert list(drawn("crashed").figures.iterdir()) == []


def test_figures_are_reproducible_with_any_matplotlib_settings(drawn: Drawn, fresh_run: RunDirectory) -> None:
    with mpl.rc_context({"text.usetex": True, "axes.facecolor": "red", "svg.hashsalt": "other"}):
        again = {path.name: path.read_bytes() for path in write_figures(read_record(fresh_run), fresh_run)}
        assert mpl.rcParams["text.usetex"]
    assert len(again) == 2 * len(NAMES)
    assert {name: (drawn("passed").figures / name).read_bytes() for name in again} == again
