"""A history returns every appended run once, compacted or not, and reports unreadable files."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.errors import AnalysisError
from analysis.history import History, HistoryFilter, Metric, store
from analysis.history.files import HistoryPartition
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
    history.compact(NIGHT)
    assert not history.append(make_record(verdict="failed"))
    assert [row["verdict"] for row in history.runs().to_pylist()] == ["passed"]


@pytest.mark.parametrize("other", ["2026-03-13", "2026-03-15"])
def test_a_run_is_in_only_one_night(history: History, other: str) -> None:
    assert history.append(make_record())
    assert not history.append(make_record(night=other))
    history.compact(NIGHT)
    assert not history.append(make_record(night=other))
    assert history.runs()["night"].to_pylist() == [NIGHT]


def test_compacting_leaves_one_file_a_table_and_the_same_rows(history: History) -> None:
    for run in ("a", "b", "c"):
        history.append(make_record(run, metrics=() if run == "b" else make_record().metrics))
    before = [table.to_pylist() for table in (history.runs(), history.metrics(), history.expectations())]
    history.compact(NIGHT)
    history.compact(NIGHT)
    after = [table.to_pylist() for table in (history.runs(), history.metrics(), history.expectations())]
    assert after == before
    files = sorted(str(path.relative_to(history.folder)) for path in history.folder.rglob("*.parquet"))
    assert files == [f"{table}/night={NIGHT}/night.parquet" for table in (EXPECTATIONS, METRICS, RUNS)]


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
    for table, run in ((RUNS, "a"), (METRICS, "b"), (EXPECTATIONS, "c")):
        HistoryPartition.for_night(history.folder, table, NIGHT).of_run(run).write_bytes(b"torn")
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
    HistoryPartition.for_night(history.folder, RUNS, NIGHT).of_run("b").unlink()  # as a crash leaves it
    assert set(history.metrics()["run"].to_pylist()) == {"a"}
    history.compact(NIGHT)
    assert set(history.metrics()["run"].to_pylist()) == {"a"}
    assert history.append(make_record("b"))
    assert history.metrics().num_rows == 4


@pytest.mark.parametrize("content", [b"", b"PAR1 this is no Parquet", b"\x00" * 5000])
def test_a_damaged_file_is_reported_and_kept_by_compacting(history: History, content: bytes) -> None:
    history.append(make_record("a"))
    history.append(make_record("b"))
    damaged = HistoryPartition.for_night(history.folder, METRICS, NIGHT).of_run("b")
    damaged.write_bytes(content)
    assert set(history.metrics()["run"].to_pylist()) == {"a"}
    (problem,) = history.problems
    assert problem.startswith(f"{damaged} is damaged")
    history.compact(NIGHT)
    assert damaged.read_bytes() == content
    assert runs(history) == ["a", "b"]


@pytest.mark.parametrize("table", [RUNS, METRICS])
def test_a_damaged_night_file_affects_only_its_table(history: History, table: str) -> None:
    history.append(make_record("a"))
    history.compact(NIGHT)
    whole = {each: HistoryPartition.for_night(history.folder, each, NIGHT).whole for each in (RUNS, METRICS)}
    mended = whole[table].read_bytes()
    whole[table].write_bytes(b"torn")
    history.append(make_record("b"))
    history.compact(NIGHT)
    whole[table].write_bytes(mended)  # from a backup
    assert runs(history) == ["a", "b"]
    assert history.metrics()["run"].to_pylist() == ["a", "a", "b", "b"]


def test_a_night_may_be_compacted_while_it_is_read(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for run in ("a", "b", "c"):
        history.append(make_record(run))
    other, real = History(history.folder), store.read_rows

    def compacted_first(path: Path, table: str, run: str | None = None) -> pa.Table:
        monkeypatch.setattr(store, "read_rows", real)
        other.compact(NIGHT)
        return real(path, table, run)

    monkeypatch.setattr(store, "read_rows", compacted_first)
    assert runs(history) == ["a", "b", "c"]
    assert history.problems == []


def test_concurrent_appending_and_compacting_is_safe(history: History) -> None:
    def work(number: int) -> None:
        mine = History(history.folder)
        for count in range(3):
            mine.append(make_record(f"run-{number}-{count}"))
            mine.compact(NIGHT)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert runs(history) == sorted(f"run-{number}-{count}" for number in range(4) for count in range(3))
    assert history.metrics().num_rows == 2 * 12
    assert history.problems == []
    assert len(list(history.folder.rglob("*.parquet"))) == 3


def test_foreign_files_are_reported_and_untouched(history: History) -> None:
    history.append(make_record("a"))
    night = HistoryPartition.for_night(history.folder, RUNS, NIGHT)
    (night.path / "notes.txt").write_text("mine")
    pq.write_table(pa.table({"x": [1]}), night.of_run("theirs"))
    (history.folder / RUNS / "night=yesterday").mkdir()
    assert runs(history) == ["a"]
    assert [problem.removeprefix(f"{history.folder}/{RUNS}/") for problem in history.problems] == [
        f"night={NIGHT}/notes.txt is not a file of the history: left out",
        f"night={NIGHT}/run-theirs.parquet is not a file of a history: it has no column `schema`: left out",
        "night=yesterday is not a night of the history: left out",
    ]
    history.compact(NIGHT)
    assert (night.path / "notes.txt").exists()
    assert night.of_run("theirs").exists()


def test_a_copy_under_another_run_s_name_does_not_count_twice(history: History) -> None:
    history.append(make_record("a"))
    night = HistoryPartition.for_night(history.folder, RUNS, NIGHT)
    night.of_run("b").write_bytes(night.of_run("a").read_bytes())
    assert runs(history) == ["a"]
    said = f"{night.of_run('b')} holds rows of a run other than the one in its name: left out"
    assert history.problems == [said]


def test_a_damaged_run_can_be_appended_again(history: History) -> None:
    history.append(make_record("a"))
    HistoryPartition.for_night(history.folder, RUNS, NIGHT).of_run("a").write_bytes(b"torn")
    assert runs(history) == []
    assert history.append(make_record("a"))
    assert runs(history) == ["a"]
    assert history.problems == []


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
    history.compact(NIGHT)
    (row,) = history.runs().to_pylist()
    assert int(row["large_seed"] or row["seed"]) == seed
    assert (row["seed"] is None) == bool(row["large_seed"])
    assert history.problems == []


def test_the_number_of_files_of_a_night_is_bounded(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "LOOSE_MAX", 4)
    for number in range(12):
        history.append(make_record(f"run-{number:02}"))
        assert len(HistoryPartition.for_night(history.folder, RUNS, NIGHT).single()) <= 4
    assert runs(history) == [f"run-{number:02}" for number in range(12)]
    assert history.metrics().num_rows == 2 * 12


@pytest.mark.slow
def test_a_new_run_is_searched_once_in_each_night(history: History, monkeypatch: pytest.MonkeyPatch) -> None:
    for day in range(10, 20):
        history.append(make_record(f"run-{day}", night=f"2026-03-{day}"))
        history.compact(f"2026-03-{day}")
    opened = []
    real = pq.ParquetFile
    monkeypatch.setattr(
        pq, "ParquetFile", lambda path, **options: (opened.append(path), real(path, **options))[1]
    )
    for number in range(20):
        history.append(make_record(f"new-{number}", night="2026-03-20"))
    assert len(opened) <= 10
    other = History(history.folder)
    assert other.append(make_record("theirs", night="2026-03-19"))
    other.compact("2026-03-19")
    assert not history.append(make_record("theirs", night="2026-03-20"))
