"""Sequence numbers with epochs: distinct, ordered, and as users write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.epochs import (
    EPOCH_MAX,
    SEQ_MAX,
    epoch_of,
    first_seq_of_epoch,
    format_seq,
    number_of,
    parse_seq,
)

seqs = st.integers(0, SEQ_MAX)


@given(seqs, seqs)
def test_numbers_compare_by_epoch_and_then_by_number(one, other):
    assert (one < other) == ((epoch_of(one), number_of(one)) < (epoch_of(other), number_of(other)))


@given(st.integers(0, EPOCH_MAX))
def test_the_first_event_of_an_epoch_is_number_one(epoch):
    assert (epoch_of(first_seq_of_epoch(epoch)), number_of(first_seq_of_epoch(epoch))) == (epoch, 1)


@given(seqs)
def test_formatted_numbers_parse_back(seq):
    assert parse_seq(format_seq(seq)) == seq


def test_numbers_of_the_first_epoch_are_formatted_without_it():
    assert (format_seq(17), format_seq(first_seq_of_epoch(3) + 16)) == ("17", "3:17")


@pytest.mark.parametrize("text", ["", ":", "3:", ":3", "x", "3:x"])
def test_invalid_numbers_are_refused(text):
    with pytest.raises(ValueError, match="invalid literal"):
        parse_seq(text)
