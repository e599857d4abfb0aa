"""Analysis, report and comparison write only inside the run, whatever symbolic links are in it; a run that is
itself reached by a link works.
"""

import gzip
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.capture.pcap.files.compressed import unpack
from analysis.capture.pcap.files.index import load_index
from analysis.errors import CaptureError
from analysis.pages.report import write_report
from analysis.pipeline import analyze_here
from experiments.campaigns.studydir import StudyDirectory, StudyRecord
from experiments.campaigns.sweepdir import SweepDirectory, runs
from experiments.files.locks import file_lock
from experiments.files.whole_files import remove
from experiments.records.rundir import RunDirectory
from testbed.cli.main import run as cutset
from tests.analysis.inspect.packets.small_run import PROXY_2, around_the_cut
from tests.campaigns import sweep_record
from topologies.errors import InputError

NAME = "20260101T000000Z-link-failure-0a1b2c"
FOLDERS = (
    "captures", "logs", "deliveries", "analysis", "analysis/unpacked", "figures", "traffic", "storage",
    "machines",
)  # fmt: skip
TEXT = "all of it"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    return around_the_cut().write(tmp_path_factory.mktemp("runs") / NAME)


@pytest.fixture
def run(made: RunDirectory, tmp_path: Path) -> RunDirectory:
    return RunDirectory(Path(shutil.copytree(made.path, tmp_path / NAME)))


@pytest.fixture
def precious(tmp_path: Path) -> Iterator[Path]:
    """Create a user's folder, and check that nothing in it changes."""
    folder = tmp_path / "precious"
    folder.mkdir()
    (folder / "thesis.tex").write_text(TEXT)
    yield folder
    assert [path.name for path in folder.iterdir()] == ["thesis.tex"]
    assert (folder / "thesis.tex").read_text() == TEXT


def put_link(path: Path, to: Path) -> None:
    remove(path)
    path.parent.mkdir(exist_ok=True)
    path.symlink_to(to)


def work(run: RunDirectory) -> None:
    """Everything that writes into a run."""
    analyze_here(run, progress=lambda _: None)
    write_report(run)
    for command in (["compare", str(run.path), str(run.path)], ["diagram", str(run.path), "--around", "cut"]):
        assert cutset(command) == 0


@pytest.mark.parametrize(
    ("command", "folder"),
    [("report", folder) for folder in FOLDERS]
    + [(command, "logs") for command in ("analyze", "packets", "diagram --around cut")],
)
def test_a_folder_of_a_run_that_is_a_link_is_refused(
    run: RunDirectory, precious: Path, command: str, folder: str, capsys: pytest.CaptureFixture[str]
) -> None:
    put_link(run.path / folder, precious)
    name, *options = command.split()
    assert cutset([name, str(run.path), *options]) == 2
    said = capsys.readouterr().err
    assert said == f"cutset: {run.path / folder}: is a symbolic link, which is refused\n"


def test_links_are_also_refused_without_the_command_line(run: RunDirectory, precious: Path) -> None:
    put_link(run.figures, precious)
    for write in (write_report, lambda run: analyze_here(run, progress=lambda _: None)):
        with pytest.raises(InputError, match="is a symbolic link"):
            write(run)


def test_a_file_in_place_of_a_folder_is_refused(run: RunDirectory) -> None:
    remove(run.figures)
    run.figures.write_text("figures")
    with pytest.raises(InputError, match="is not a folder: move it away"):
        RunDirectory.open(run.path)


@pytest.mark.slow
def test_files_and_tables_that_are_links_are_replaced(run: RunDirectory, precious: Path) -> None:
    capture = run.capture(f"{PROXY_2}-eth0.pcap")
    capture.with_name(f"{capture.name}.gz").write_bytes(gzip.compress(capture.read_bytes()))
    capture.unlink()
    run.capture_index(capture).unlink()
    before = set(run.path.rglob("*"))
    work(run)
    tables = {path for path in run.analysis.iterdir() if path.is_dir() and path != run.unpacked}
    inside = {path for table in tables for path in table.rglob("*")}
    files = {path for path in run.path.rglob("*") if path.is_file() and path not in before} - inside
    assert {run.report_html, run.comparison_html, run.unpacked / capture.name} <= files
    assert any(path.suffix == ".svg" for path in files)
    known = {path for path in before if path.suffix == ".index" or path.parent == run.analysis} | {
        run.summary_json
    }
    linked = sorted((tables | files | known) - {run.unpacked} - inside)
    for number, path in enumerate(linked):
        put_link(path, precious / ("thesis.tex", ".")[number % 2])
    work(run)
    assert not [path for path in linked if path.is_symlink()]


def test_an_index_and_unpacked_captures_replace_symbolic_links(run: RunDirectory, precious: Path) -> None:
    capture = run.capture(f"{PROXY_2}-eth0.pcap")
    put_link(run.capture_index(capture), precious / "thesis.tex")
    load_index(capture)
    assert not run.capture_index(capture).is_symlink()
    packed = capture.with_name(f"{capture.name}.gz")
    packed.write_bytes(gzip.compress(capture.read_bytes()))
    place = run.unpacked / capture.name
    for path in (place, place.with_name(f"{place.name}.origin")):
        put_link(path, precious / "thesis.tex")
    assert unpack(packed) == place
    assert place.read_bytes() == capture.read_bytes()
    assert not place.is_symlink()
    put_link(run.unpacked, precious)
    with pytest.raises(CaptureError, match="is a symbolic link"):
        unpack(packed)


def test_a_run_reached_by_a_symbolic_link_is_analysed(run: RunDirectory, tmp_path: Path) -> None:
    link = tmp_path / "newest"
    link.symlink_to(run.path)
    assert cutset(["packets", str(link)]) == 0
    analyze_here(RunDirectory(link), progress=lambda _: None)


@pytest.mark.parametrize("place", ["figures", "points", "points/{}", "points/{}/figures"])
def test_a_folder_of_a_sweep_that_is_a_link_is_refused(tmp_path: Path, precious: Path, place: str) -> None:
    sweep = SweepDirectory(tmp_path / NAME)
    sweep.points.mkdir(parents=True)
    points = runs({"roles.driver": [1, 2]}, 1, 7)
    sweep.write(sweep_record(*points))
    sweep.make_run(points[0])
    assert SweepDirectory.open(sweep.path) == sweep
    put_link(sweep.path / place.format(points[0].name), precious)
    with pytest.raises(InputError, match="is a symbolic link"):
        SweepDirectory.open(sweep.path)
    assert cutset(["report", str(sweep.path)]) == 2


@pytest.mark.parametrize("place", ["figures", "seeds", "seeds/7"])
def test_a_folder_of_a_study_that_is_a_link_is_refused(tmp_path: Path, precious: Path, place: str) -> None:
    study = StudyDirectory(tmp_path / "study")
    study.path.mkdir()
    study.write(StudyRecord("scribe", "many-groups", {}, (7,)))
    assert study.read().seeds == (7,)
    put_link(study.path / place, precious)
    with pytest.raises(InputError, match="is a symbolic link"):
        study.read()


def test_a_lock_that_is_a_link_is_refused(tmp_path: Path, precious: Path) -> None:
    lock = tmp_path / "nightly.lock"
    lock.symlink_to(precious / "thesis.tex")
    with (
        pytest.raises(InputError, match="is a symbolic link"),
        file_lock(lock, who="quick"),
    ):
        pass
