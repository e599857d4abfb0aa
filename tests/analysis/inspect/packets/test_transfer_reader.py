"""Transfers of all senders in order of time, piece by piece."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.time_range import TimeRange
from analysis.errors import AnalysisError
from analysis.inspect.packets.filters import Filter
from analysis.inspect.packets.transfer_reader import Step, merge, transfers
from analysis.schemas import TRANSFERS
from experiments.records.rundir import RunDirectory
from tests.analysis.inspect.packets.test_filters import row

SCHEMA = pa.schema([("t_ns", pa.int64()), ("source", pa.int64())])


def step(source, times, reached=None):
    rows = pa.record_batch({"t_ns": times, "source": [source] * len(times)}, schema=SCHEMA)
    return Step(rows, times[-1] if reached is None else reached)


def merged(*sources):
    return [
        tuple(row.values()) for table in merge([iter(each) for each in sources]) for row in table.to_pylist()
    ]


@given(st.lists(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=5), max_size=5), max_size=5))
def test_merged_rows_are_ordered_by_time_for_any_batches(sources):
    steps, everything = [], []
    for source, batches in enumerate(sources):
        times = sorted(t_ns for batch in batches for t_ns in batch)
        everything += [(t_ns, source) for t_ns in times]
        steps.append([])
        for batch in batches:
            part, times = times[: len(batch)], times[len(batch) :]
            steps[-1].append(step(source, part))
    found = merged(*steps)
    assert [t_ns for t_ns, _ in found] == sorted(t_ns for t_ns, _ in everything)
    assert sorted(found) == sorted(everything)


def test_the_first_rows_are_yielded_before_all_sources_are_read():
    taken = []

    def source(number, starts):
        for start in starts:
            taken.append((number, start))
            yield step(number, [start, start + 1])

    first = next(merge([source(0, range(0, 100, 2)), source(1, [50])]))
    assert first.to_pylist() == [{"t_ns": 0, "source": 0}, {"t_ns": 1, "source": 0}]
    assert taken == [(0, 0), (1, 50), (0, 2)]


def test_a_source_without_matching_rows_does_not_delay_the_others():
    nothing = step(0, [], reached=10)
    found = merge([iter([nothing] * 1), iter([step(1, [5, 20]), step(1, [21])])])
    assert [table.column("t_ns").to_pylist() for table in found] == [[5], [20], [21]]


def write_senders(path, *senders):
    run = RunDirectory(path)
    table = run.table("transfers")
    table.mkdir(parents=True)
    for name, times in zip("abc", senders, strict=False):
        rows = pa.Table.from_pylist([row(t_ns=t_ns, src=name) for t_ns in times], schema=TRANSFERS)
        pq.write_table(rows, table / f"part-{name}.parquet", row_group_size=10)
    (table / ".part-c.parquet.123").write_bytes(b"half a file of an active writer")
    return run


def test_files_of_all_senders_are_read_but_not_unfinished_ones(tmp_path):
    run = write_senders(tmp_path, [1, 3, 5], [2, 3, 4])
    rows = [
        (each["t_ns"], each["src"])
        for t in transfers(run, Filter(), ("t_ns", "src"))
        for each in t.to_pylist()
    ]
    assert rows == [(1, "a"), (2, "b"), (3, "a"), (3, "b"), (4, "b"), (5, "a")]


@pytest.fixture
def asked(monkeypatch):
    """Return the list of row groups that are read."""
    asked = []
    iter_batches = pq.ParquetFile.iter_batches

    def spy(file, size, groups, **how):
        asked.append(groups)
        return iter_batches(file, size, groups, **how)

    monkeypatch.setattr(pq.ParquetFile, "iter_batches", spy)
    return asked


def test_row_groups_of_other_times_are_not_read(tmp_path, asked):
    run = write_senders(tmp_path, range(100))
    found = transfers(run, Filter(times=TimeRange(35, 52)), ("t_ns",))
    assert [t_ns for table in found for t_ns in table.column("t_ns").to_pylist()] == list(range(35, 52))
    assert asked == [[3], [4], [5]]


def test_row_groups_of_other_senders_are_not_read(tmp_path, asked):
    run = write_senders(tmp_path, [])
    sent = [row(t_ns=t_ns, sender=f"h{t_ns // 10}", receiver="r") for t_ns in range(40)]
    unknown = [row(t_ns=t_ns, sender=None, receiver="r") for t_ns in range(40, 50)]
    rows = pa.Table.from_pylist([*sent, *unknown], schema=TRANSFERS)
    pq.write_table(rows, run.table("transfers") / "part-z.parquet", row_group_size=10)
    found = transfers(run, Filter(pairs=frozenset({("h1", "r"), ("h3", "r"), ("h2", "s")})), ("t_ns",))
    times = [t_ns for table in found for t_ns in table.column("t_ns").to_pylist()]
    assert times == [*range(10, 20), *range(30, 40)]
    assert asked == [[1], [2], [3], [4]]  # of the last one it does not stand there who sent


def test_an_outdated_or_damaged_table_is_refused_with_the_remedy(tmp_path):
    run = write_senders(tmp_path, [1])
    (path,) = run.table("transfers").glob("part-*")
    with pytest.raises(AnalysisError, match="has no column new; `cutset analyze` writes it again"):
        list(transfers(run, Filter(), ("t_ns", "new")))
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(
        AnalysisError, match=r"part-a\.parquet: cannot be read .*; `cutset analyze` writes it"
    ):
        list(transfers(run, Filter(), ("t_ns",)))


def test_only_the_requested_columns_are_returned(tmp_path):
    run = write_senders(tmp_path, [1])
    (table,) = transfers(run, Filter(types=frozenset({"EVENTS"})), ("src", "t_ns"))
    assert table.column_names == ["src", "t_ns"]
