"""A history returns every appended run once, and reports unreadable files."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from analysis.errors import AnalysisError
from analysis.history import History, HistoryFilter, Metric
from analysis.history.files import night_file
from analysis.history.history_schemas import EXPECTATIONS, METRICS, RUNS, shown_schema
from tests.analysis.history.records import LOST, NIGHT, P95, make_record

OTHER = "20260314T020100Z-b-000002"


@pytest.fixture
def history(tmp_path: Path) -> History:
    return History(tmp_path / "history")


def runs(history: History, where: HistoryFilter | None = None) -> list[str]:
    return history.runs(where or HistoryFilter())["run"].to_pylist()


def test_a_missing_history_is_empty(history: History) -> None:
    assert history.nights() == []
    for table, rows in ((RUNS, history.runs()), (METRICS, history.metrics())):
        assert rows.num_rows == 0
        assert rows.schema == shown_schema(table)
    assert history.problems == []
    assert not history.folder.exists()


def test_appended_runs_read_back(history: History) -> None:
    record = make_record(reasons=("busy",), settings={"duration": "30s", "roles.client": 3})
    assert history.append(record)
    (row,) = history.runs().to_pylist()
    assert row["night"] == NIGHT
    assert (row["run"], row["suite"], row["entry"], row["seed"]) == (record.run, "quick", "cut", 7)
    assert row["settings"] == '{"duration": "30s", "roles.client": 3}'
    assert row["reasons"] == ["busy"]
    assert row["path"] == record.path
    assert {row["metric"]: row["value"] for row in history.metrics().to_pylist()} == {P95: 80.0, LOST: 0.0}
    (kept,) = history.expectations().to_pylist()
    assert (kept["text"], kept["value"], kept["held"]) == ("events.lost == 0", 0.0, True)


def test_a_run_is_in_the_history_once(history: History) -> None:
    assert history.append(make_record())
    assert not history.append(make_record(verdict="failed"))
    assert [row["verdict"] for row in history.runs().to_pylist()] == ["passed"]


@pytest.mark.parametrize("other", ["2026-03-13", "2026-03-15"])
def test_a_run_is_in_only_one_night(history: History, other: str) -> None:
    assert history.append(make_record())
    assert not history.append(make_record(night=other))
    assert history.runs()["night"].to_pylist() == [NIGHT]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        (HistoryFilter(), ["a", "b", "c"]),
        (HistoryFilter(suite="quick"), ["a", "b"]),
        (HistoryFilter(entry="throughput"), ["b"]),
        (HistoryFilter(since="2026-03-15"), ["c"]),
        (HistoryFilter(until="2026-03-14"), ["a", "b"]),
        (HistoryFilter(verdicts=("failed", "crashed")), ["b"]),
        (HistoryFilter(valid=True), ["a", "b"]),
        (HistoryFilter(valid=False), ["c"]),
        (HistoryFilter(run="c"), ["c"]),
        (HistoryFilter(experiment="fanout"), ["c"]),
        (HistoryFilter(suite="quick", valid=False), []),
    ],
)
def test_filters_select_runs_and_their_metrics(
    history: History, where: HistoryFilter, found: list[str]
) -> None:
    history.append(make_record("a"))
    history.append(make_record("b", entry="throughput", verdict="failed"))
    invalid = {"verdict": "invalid", "valid": False, "experiment": "fanout"}
    history.append(make_record("c", night="2026-03-15", suite="full", **invalid))
    assert runs(history, where) == found
    assert sorted(set(history.metrics(where)["run"].to_pylist())) == found
    assert history.expectations(where)["run"].to_pylist() == found


def test_the_tables_are_of_the_same_runs_and_every_problem_is_named(history: History) -> None:
    for run in ("a", "b", "c"):
        history.append(make_record(run))
    history.append(make_record("d", suite="full"))
    for table in (RUNS, METRICS, EXPECTATIONS):
        night_file(history.folder, table, NIGHT).with_name("torn.parquet").write_bytes(b"torn")
    where = HistoryFilter(suite="quick")
    found, metrics, expectations = history.tables(where)
    assert len(history.problems) == 3
    assert found.equals(history.runs(where))
    assert metrics.equals(history.metrics(where))
    assert expectations.equals(history.expectations(where))


def test_history_and_runs_may_move_together(tmp_path: Path) -> None:
    here, there = tmp_path / "here", tmp_path / "there"
    history = History(here / "history")
    history.append(make_record("a", path=str(here / "runs" / "a")))
    here.rename(there)
    assert History(there / "history").runs()["path"].to_pylist() == [str(there / "runs" / "a")]


def test_metrics_without_their_run_do_not_count(history: History) -> None:
    history.append(make_record("a"))
    history.append(make_record("b"))
    file = night_file(history.folder, RUNS, NIGHT)
    rows = pq.read_table(file, partitioning=None)
    pq.write_table(rows.filter(pc.equal(rows["run"], "a")), file)  # as a crash leaves it
    assert set(history.metrics()["run"].to_pylist()) == {"a"}
    assert history.append(make_record("b"))
    assert history.metrics().num_rows == 4


@pytest.mark.parametrize("content", [b"", b"PAR1 this is no Parquet", b"\x00" * 5000])
@pytest.mark.parametrize("table", [RUNS, METRICS])
def test_a_damaged_file_affects_only_its_table_and_is_kept(
    history: History, table: str, content: bytes
) -> None:
    history.append(make_record("a"))
    damaged = night_file(history.folder, table, NIGHT)
    whole = damaged.read_bytes()
    damaged.write_bytes(content)
    assert runs(history) == ([] if table == RUNS else ["a"])
    assert history.metrics().num_rows == 0
    (problem,) = history.problems
    assert problem.startswith(f"{damaged} is damaged")
    history.append(make_record("b"))
    assert damaged.with_suffix(".damaged").read_bytes() == content
    assert set(history.metrics()["run"].to_pylist()) == {"b"}
    (problem,) = history.problems
    assert problem.startswith(str(damaged.with_suffix(".damaged")))
    damaged.with_name("backup.parquet").write_bytes(whole)
    assert runs(history) == ["a", "b"]
    assert history.metrics()["run"].to_pylist() == ["a", "a", "b", "b"]


def test_each_damaged_file_of_a_night_is_kept(history: History) -> None:
    file = night_file(history.folder, RUNS, NIGHT)
    for run in ("a", "b", "c"):
        history.append(make_record(run))
        file.write_bytes(run.encode())
    history.append(make_record("d"))
    kept = [file.with_suffix(f".damaged{number}").read_bytes() for number in ("", 1, 2)]
    assert kept == [b"a", b"b", b"c"]


def test_files_of_single_runs_are_read_and_a_run_counts_once(history: History) -> None:
    for run in ("a", "b"):
        history.append(make_record(run))
        for table in (RUNS, METRICS, EXPECTATIONS):  # as earlier versions wrote them
            night = night_file(history.folder, table, NIGHT)
            night.with_name(f"run-{run}.parquet").write_bytes(night.read_bytes())
            if run == "a":
                night.unlink()
    assert runs(history) == ["a", "b"]
    assert not history.append(make_record("a"))
    assert history.append(make_record("c"))
    assert history.metrics()["run"].to_pylist() == ["a", "a", "b", "b", "c", "c"]
    assert history.problems == []


def test_concurrent_appending_is_safe(history: History) -> None:
    def work(number: int) -> None:
        mine = History(history.folder)
        for count in range(3):
            mine.append(make_record(f"run-{number}-{count}"))

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert runs(history) == sorted(f"run-{number}-{count}" for number in range(4) for count in range(3))
    assert history.metrics().num_rows == 2 * 12
    assert history.problems == []
    assert len(list(history.folder.rglob("*.parquet"))) == 3


def test_foreign_files_are_reported_and_untouched(history: History) -> None:
    history.append(make_record("a"))
    night = night_file(history.folder, RUNS, NIGHT).parent
    (night / "notes.txt").write_text("mine")
    pq.write_table(pa.table({"x": [1]}), night / "theirs.parquet")
    (history.folder / RUNS / "night=yesterday").mkdir()
    assert runs(history) == ["a"]
    assert [problem.removeprefix(f"{history.folder}/{RUNS}/") for problem in history.problems] == [
        f"night={NIGHT}/notes.txt is not a file of the history: left out",
        f"night={NIGHT}/theirs.parquet is not a file of a history: it has no column `schema`: left out",
        "night=yesterday is not a file of the history: left out",
    ]
    assert history.append(make_record("b"))
    assert {"notes.txt", "theirs.parquet"} <= {path.name for path in night.iterdir()}


def test_an_unwritable_history_is_reported(tmp_path: Path) -> None:
    (tmp_path / "history").write_text("a file")
    with pytest.raises(AnalysisError, match="20260314T020000Z-a-000001 cannot be added to the history"):
        History(tmp_path / "history").append(make_record())


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("night", "yesterday", "write its date as 2026-03-14"),
        ("night", "2026-3-14", "write its date as 2026-03-14"),
        ("night", "20260314", "write its date as 2026-03-14"),
        ("night", "2026-02-30", "write its date as 2026-03-14"),
        ("run", "", "is not the name of a run's directory"),
        ("run", "a/b", "is not the name of a run's directory"),
        ("verdict", "degraded", "'degraded' is none of crashed, failed, invalid, passed"),
        ("entry", "cut\nx", "its entry cannot be shown: '"),
        ("path", "/runs/\u202e", "its path cannot be shown: '"),
        ("metrics", (Metric("latency\n", 1.0, "ms", "lower"),), "its metric cannot be shown: '"),
    ],
)
def test_a_record_with_unstorable_values_is_refused(field: str, value: object, why: str) -> None:
    with pytest.raises(AnalysisError, match=why):
        make_record(**{field: value})


@pytest.mark.parametrize("seed", [(1 << 64) - 1, 1 << 63, 1 - (1 << 64), (1 << 63) - 1, -(1 << 63), 0])
def test_every_possible_seed_is_stored(history: History, seed: int) -> None:
    history.append(make_record(seed=seed))
    (row,) = history.runs().to_pylist()
    assert int(row["large_seed"] or row["seed"]) == seed
    assert (row["seed"] is None) == bool(row["large_seed"])
    assert history.problems == []
