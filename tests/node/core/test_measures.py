"""Files of measures read back as written, whatever a crash cuts off."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.errors import AnalysisError
from analysis.timelines.measures import figures, read_measures, summary, table
from node.core.machine import Measure
from node.core.measures import BlockReader, Columns

names = st.text("abcXYZ_-019", min_size=1, max_size=6).map(lambda text: f"m{text}")
measures = st.builds(Measure, names, st.dictionaries(names, st.floats(), min_size=1, max_size=4))
timed = st.lists(st.tuples(st.integers(0, 2**62), measures), max_size=12)


def flat(found):
    return sorted(
        (name, column, t_ns, str(value))
        for name, blocks in found.items()
        for columns, times, values in blocks
        for column, row in zip(columns, values, strict=True)
        for t_ns, value in zip(times.tolist(), row.tolist(), strict=True)
    )


@given(st.lists(timed, max_size=4))
def test_measurements_read_back(tmp_path_factory, starts):
    path = tmp_path_factory.mktemp("measures") / "host.measures"
    path.write_bytes(
        b"".join(Columns().encode(each) for each in starts)
    )  # each start of the process restarts the numbering
    expected = sorted(
        (each.name, column, t_ns, str(float(value)))
        for start in starts
        for t_ns, each in start
        for column, value in each.values.items()
    )
    assert flat(read_measures("host", path)) == expected


def test_a_growing_file_is_read_incrementally(tmp_path):
    columns, path, reader = Columns(), tmp_path / "host.measures", BlockReader()
    first = columns.encode([(1, Measure("queue", {"events": 3.0}))])
    data = first + columns.encode([(2, Measure("queue", {"events": 4.0}))])
    read = []
    for length in range(0, len(data) + 1, 7):
        path.write_bytes(data[:length])
        read += flat(read_measures("host", path, reader=reader))
    path.write_bytes(data)
    read += flat(read_measures("host", path, reader=reader))
    assert read == [("queue", "events", 1, "3.0"), ("queue", "events", 2, "4.0")]


def test_another_file_is_refused(tmp_path):
    path = tmp_path / "host.measures"
    path.write_bytes(b"\x07" * 40)
    with pytest.raises(AnalysisError, match="no block of measures"):
        read_measures("host", path)


@pytest.mark.parametrize("name", ["a.b", "", "2nd", "a b"])
def test_names_that_no_path_can_have_are_refused(name):
    with pytest.raises(ValueError, match="cannot name a measure"):
        Columns().encode([(1, Measure(name, {"x": 1.0}))])


def test_figures_combine_all_hosts_and_ignore_nan(tmp_path):
    given = {"a": [(10, 1.0), (40, 5.0), (50, math.nan)], "b": [(20, 9.0), (30, 1.0)]}
    rows = []
    for host, values in given.items():
        path = tmp_path / host
        path.write_bytes(Columns().encode((t_ns, Measure("queue", {"events": x})) for t_ns, x in values))
        rows += figures(table(host, read_measures(host, path))).to_pylist()
    assert summary(rows) == {
        "queue": {"events": {"count": 4, "mean": 4.0, "min": 1.0, "max": 9.0, "last": 5.0}}
    }
    assert np.isnan(table("a", read_measures("a", tmp_path / "a")).column("number").to_numpy()).sum() == 1
