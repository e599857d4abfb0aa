"""Numbers pass between Arrow and NumPy as they are, slices and nulls included."""

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.inspect.packets.arrays import flags, from_arrow, known, strings, to_arrow

slices = st.tuples(st.integers(0, 20), st.integers(0, 20))


@given(st.lists(st.integers(-(2**31), 2**31 - 1), max_size=20), slices, st.sampled_from(["int32", "int64"]))
def test_integers_come_and_go(values, part, kind):
    array = pa.array(values, kind).slice(*part)
    assert from_arrow(array).tolist() == array.to_pylist()
    assert from_arrow(pa.chunked_array([array, array], kind)).tolist() == array.to_pylist() * 2
    assert to_arrow(from_arrow(array)).equals(array)
    assert to_arrow(from_arrow(array)[::2]).to_pylist() == array.to_pylist()[::2]


@given(st.lists(st.sampled_from([True, False, None]), max_size=20), slices)
def test_booleans_come_and_null_is_false(values, part):
    array = pa.array(values, pa.bool_()).slice(*part)
    assert flags(array).tolist() == [value is True for value in array.to_pylist()]


@given(st.lists(st.one_of(st.none(), st.integers(0, 9)), max_size=20), slices)
def test_null_values_are_unknown(values, part):
    array = pa.array(values, pa.int32()).slice(*part)
    there = known(array)
    assert there.tolist() == [value is not None for value in array.to_pylist()]
    assert from_arrow(array)[there].tolist() == [value for value in array.to_pylist() if value is not None]


@given(st.lists(st.text(max_size=5), max_size=8))
@pytest.mark.slow
def test_strings_are_the_same_for_arrow(values):
    assert strings(values).equals(pa.array(values, pa.string()))
