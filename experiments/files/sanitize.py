"""What may be shown of text from elsewhere: nothing that moves the cursor, hides what stands beside it, or
turns it around (control characters of C0 and C1, and Unicode's format characters, as U+202E).
"""

import re
from unicodedata import category

CHARACTERS_MAX = 1000
HIDDEN = "?"
_SUSPECT = re.compile(r"[^ -~]")
_SUSPECT_IN_LINES = re.compile(r"\x1b\[(?:(?:[0-4]|22|[39][0-7]|39);?)*m|[^\n\t -~]")
"""Colours and weights (ECMA-48, Select Graphic Rendition), as a whole; or what may not be shown."""


def sanitize(text: str) -> str:
    """The end of a text, where the important part is, on one line; "?" is what may not be shown."""
    line = " ".join(text.split())[-CHARACTERS_MAX:]
    return "".join(letter if letter.isprintable() else HIDDEN for letter in line)


def printable(text: str) -> str:
    """The text on one line, as long as it was; what may not be shown becomes question marks."""
    return _SUSPECT.sub(_shown, text)


def printable_lines(text: str) -> str:
    """The same of lines that a command writes, with their ends, tabs and colours."""
    return _SUSPECT_IN_LINES.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    text = found[0]
    if len(text) > 1 or text.isprintable() or category(text) == "Zs":  # spaces that no line is broken at
        return text
    return HIDDEN
