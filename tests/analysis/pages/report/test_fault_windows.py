"""The messages that the page embeds: of the bins around each fault, bounded, those that tell most."""

import base64
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.pages.report import fault_windows
from analysis.pages.report import fault_windows as module
from analysis.pages.report.fault_windows import FaultWindows, moments, write_diagrams
from analysis.pages.report.run_reader import read_record
from analysis.schemas import TRANSFERS
from experiments.records.rundir import RunDirectory
from tests.analysis.pages.report.report_scenario import BIN_S, SCENARIOS
from tests.analysis.pages.report.synthetic_run import write_run
from tests.analysis.pages.report.synthetic_transfers import Row, events, message

CUT_BIN = round(19.0 / BIN_S)


def embedded(run: RunDirectory) -> FaultWindows:
    return moments(run, read_record(run))


def with_transfers(run: RunDirectory, rows: list[Row]) -> RunDirectory:
    """Replace the run's table of transfers."""
    shutil.rmtree(run.table("transfers"))
    run.table("transfers").mkdir()
    table = pa.Table.from_pylist(sorted(rows, key=lambda row: row["t_ns"]), TRANSFERS)
    pq.write_table(table, run.table("transfers") / "part-00000.parquet")
    return run


def test_the_bins_around_the_beginning_and_the_end_of_a_fault_are_there(fresh_run: RunDirectory) -> None:
    found = [one["number"] for one in embedded(fresh_run).bins]
    for at_s in (19.0, 41.0):
        assert round((at_s - 1) / BIN_S) in found
        assert round((at_s + 2.9) / BIN_S) in found
    assert round(30.0 / BIN_S) not in found


def test_a_message_is_in_the_bin_in_which_it_was_sent(fresh_run: RunDirectory) -> None:
    inside = [events(19.2 + offset, "r0-proxy-0", "r1-proxy-0", 0, 1) for offset in (0.0, 0.1999)]
    outside = [events(19.4, "r0-proxy-0", "r1-proxy-0", 0, 1)]
    found = {one["number"]: one for one in embedded(with_transfers(fresh_run, inside + outside)).bins}
    assert [row[0] for row in found[CUT_BIN + 1]["rows"]] == [19200.0, 19399.9]
    assert [found[CUT_BIN + n]["total"] for n in (0, 1, 2, 3)] == [0, 2, 1, 0]


def test_the_most_informative_messages_stay_and_all_are_counted(fresh_run: RunDirectory) -> None:
    many = 3 * module.MESSAGES_OF_BIN_MAX
    gossip = [
        message(19.0 + n * 1e-5, "r0-client-0", "r0-proxy-0", "NOTIFY", advertised=[]) for n in range(many)
    ]
    telling = [
        message(19.15, "r2-proxy-0", "r0-proxy-0", "SUBSCRIBE", stream=3, cnt=5),
        events(19.16, "r2-proxy-0", "r3-proxy-0", 2, 1, took_s=None),
        events(19.17, "r2-proxy-0", "r1-proxy-0", 2, 1),
        events(19.18, "r0-proxy-0", "r0-client-0", 2, 1) | {"retransmitted": True},
    ]
    made = embedded(with_transfers(fresh_run, gossip + telling))
    (cut,) = (one for one in made.bins if one["number"] == CUT_BIN)
    assert (len(cut["rows"]), cut["total"]) == (module.USUAL_OF_BIN_MAX + 4, many + 4)
    labels = [made.labels[row[3]] for row in cut["rows"]]
    assert labels[-4:] == ["SUBSCRIBE s3 after 5", *["EVENTS s2 [1..1000]"] * 3]
    assert [(row[5], row[6]) for row in cut["rows"][-4:]] == [("a", 0), ("l", 1), ("a", 0), ("a", 1)]
    times = [row[0] for row in cut["rows"]]
    assert times == sorted(times)
    assert times[module.USUAL_OF_BIN_MAX - 1] > 19000 + 0.9 * many * 0.01  # all of the bin is sampled


def test_retransmissions_come_before_link_crossings(fresh_run: RunDirectory) -> None:
    over_links = [
        events(19.0 + n * 1e-5, "r2-proxy-0", "r1-proxy-0", 2, 1)
        for n in range(module.MESSAGES_OF_BIN_MAX + 50)
    ]
    again = events(19.18, "r0-proxy-0", "r0-client-0", 2, 1) | {"retransmitted": True}
    usual = events(19.17, "r0-proxy-0", "r0-client-0", 2, 1)
    made = embedded(with_transfers(fresh_run, [*over_links, again, usual]))
    (cut,) = (one for one in made.bins if one["number"] == CUT_BIN)
    assert len(cut["rows"]) == module.MESSAGES_OF_BIN_MAX
    assert cut["rows"][-1][0] == pytest.approx(19180.0)
    assert cut["rows"][-2][0] < 19100


def test_a_link_has_the_messages_between_its_regions_both_ways(fresh_run: RunDirectory) -> None:
    made = embedded(fresh_run)
    (before,) = (one for one in made.bins if one["number"] == CUT_BIN - 3)
    number = made.links.index("r0-r1")
    pairs = {(made.hosts[row[1]], made.hosts[row[2]]) for row in before["rows"] if row[7] == number}
    assert pairs == {("r0-proxy-0", "r1-proxy-0"), ("r1-proxy-0", "r0-proxy-0")}
    assert before["links"][str(number)] == sum(row[7] == number for row in before["rows"])


def test_the_number_of_bins_is_bounded_and_what_is_left_out_is_counted(
    fresh_run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = len(embedded(fresh_run).bins)
    monkeypatch.setattr(module, "BINS_MAX", 5)
    made = embedded(fresh_run)
    assert [one["number"] for one in made.bins] == list(range(CUT_BIN - 5, CUT_BIN))
    assert made.bins_left_out == whole - 5


@pytest.mark.parametrize(
    ("name", "reason"),
    [("uncaptured", "no packets were captured"), ("crashed", "cutset analyze writes it")],
)
def test_a_run_without_the_table_says_why(tmp_path: Path, name: str, reason: str) -> None:
    made = embedded(write_run(tmp_path, SCENARIOS[name]))
    assert reason in made.missing
    assert made.bins == []


def test_messages_from_outside_the_run_are_not_lost(fresh_run: RunDirectory) -> None:
    stranger = message(19.1, "r0-proxy-0", "r1-proxy-0", "HELLO") | {"sender": None}
    made = embedded(with_transfers(fresh_run, [stranger]))
    (row,) = (row for one in made.bins for row in one["rows"])
    assert made.hosts[row[1]] == "?"


Reported = Callable[[str], RunDirectory]


def test_each_fault_has_its_picture_in_the_page_and_beside_it(reported: Reported) -> None:
    run = reported("passed")
    page = run.report_html.read_text()
    embedded = [
        base64.b64decode(one).decode()
        for one in re.findall(r'src="data:image/svg\+xml;base64,([^"]+)"', page)
    ]
    linked = re.findall(r'href="(figures/[^"]+)"', page)
    assert linked == ["figures/diagram-cut.svg", "figures/diagram-restore.svg"]
    assert embedded == [(run.path / path).read_text() for path in linked]


def test_the_page_says_in_words_what_a_picture_shows(reported: Reported) -> None:
    page = reported("passed").report_html.read_text()
    first = re.search(r'alt="([^"]+)"', page)
    assert first
    assert re.fullmatch(
        r"\d+ messages between r0-proxy-0, r2-proxy-0, r3-proxy-0, 18\.75 to 20\.\d+ s", first[1]
    )


@pytest.mark.parametrize("name", ["uncaptured", "crashed", "undisturbed"])
def test_without_messages_or_faults_there_is_no_picture(reported: Reported, name: str) -> None:
    run = reported(name)
    assert "diagrams" not in re.findall(r'id="(\w+)"', run.report_html.read_text())
    assert not list(run.figures.glob("diagram-*"))


def test_only_the_first_of_many_faults_are_drawn(
    fresh_run: RunDirectory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fault_windows, "DIAGRAMS_MAX", 1)
    (only,) = write_diagrams(read_record(fresh_run), fresh_run)
    assert (only.fault, only.path) == ("cut", "figures/diagram-cut.svg")
    assert Path(fresh_run.path / only.path).read_text() == only.svg
