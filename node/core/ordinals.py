"""Strings and dates as numbers in the same order, and back (Meghdoot 3.2 and 5.1 need ordered domains).

A date is its number of days since 1970-01-01. A string of letters a to z, up to a maximum length, is its rank
among all of these in alphabetical order, the empty one being 0: every whole number up to the last rank is a
string, so that random numbers are words, too. Ranks of 11 letters are exact as doubles.
"""

import re
from datetime import date

EPOCH = date(1970, 1, 1).toordinal()
LETTERS = "abcdefghijklmnopqrstuvwxyz"
WORD = re.compile("[a-z]*")
LENGTH_MAX = 11


def of_date(text: str) -> int:
    """Return the ordinal of a date such as 1998-01-02. Raises ValueError if it is not a date."""
    return date.fromisoformat(text).toordinal() - EPOCH


def date_of(ordinal: int) -> str:
    """Return the date with this ordinal."""
    return date.fromordinal(ordinal + EPOCH).isoformat()


def of_word(text: str, length: int) -> int:
    """Return the rank of a word of at most `length` letters. Raises ValueError for other words."""
    if not WORD.fullmatch(text) or len(text) > length:
        raise ValueError(f"{text!r:.40} is not a word of at most {length} letters a to z")
    return sum(
        1 + LETTERS.index(letter) * _words_up_to(length - place - 1) for place, letter in enumerate(text)
    )


def word_of(rank: int, length: int) -> str:
    """Return the word with this rank."""
    found = ""
    while rank:
        letter, rank = divmod(rank - 1, _words_up_to(length - len(found) - 1))
        found += LETTERS[letter]
    return found


def _words_up_to(length: int) -> int:
    """Return the number of words of at most `length` letters, the empty one included."""
    return int((len(LETTERS) ** (length + 1) - 1) // (len(LETTERS) - 1))
