"""Ordinals keep the order of words and dates, and each number is one of them."""

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.ordinals import LENGTH_MAX, date_of, of_date, of_word, word_of

words = st.text("abz", max_size=LENGTH_MAX) | st.text("abcdefghijklmnopqrstuvwxyz", max_size=LENGTH_MAX)


@given(words, words)
def test_words_are_in_alphabetical_order(one, other):
    assert (one < other) == (of_word(one, LENGTH_MAX) < of_word(other, LENGTH_MAX))


@given(
    st.integers(1, LENGTH_MAX).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, of_word("z" * n, n))))
)
def test_every_number_up_to_the_last_one_is_a_word(drawn):
    length, rank = drawn
    assert of_word(word_of(rank, length), length) == rank
    assert len(word_of(rank, length)) <= length


def test_the_longest_words_are_exact_as_doubles():
    last = of_word("z" * LENGTH_MAX, LENGTH_MAX)
    assert float(last) - float(last - 1) == 1


@given(st.integers(0, 20_000))
def test_dates_count_days(days):
    assert of_date((date(1970, 1, 1) + timedelta(days)).isoformat()) == days
    assert of_date(date_of(days)) == days


@pytest.mark.parametrize("text", ["aB", "a1", "é", "aaaa", " "])
def test_words_of_another_length_are_refused(text):
    with pytest.raises(ValueError, match="not a word of at most 3 letters"):
        of_word(text, 3)
