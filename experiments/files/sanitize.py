"""Sanitizes text from elsewhere for display: no character may move the cursor, hide its neighbours or reverse
text (control characters of C0 and C1, and Unicode's format characters, such as U+202E).
"""

import re
from unicodedata import category

CHARACTERS_MAX = 1000
HIDDEN = "?"
_SUSPECT = re.compile(r"[^ -~]")
_SUSPECT_IN_LINES = re.compile(r"\x1b\[(?:(?:[0-4]|22|[39][0-7]|39);?)*m|[^\n\t -~]")
"""Colours and weights (ECMA-48, Select Graphic Rendition) as a whole, or characters that may be unsafe."""


def sanitize(text: str) -> str:
    """Return the end of a text, which matters most, on one line, with "?" for unsafe characters."""
    line = " ".join(text.split())[-CHARACTERS_MAX:]
    return "".join(letter if letter.isprintable() else HIDDEN for letter in line)


def printable(text: str) -> str:
    """Return the whole text on one line, with "?" for unsafe characters."""
    return _SUSPECT.sub(_shown, text)


def printable_lines(text: str) -> str:
    """Return a command's output, with line ends, tabs and colours, and "?" for unsafe characters."""
    return _SUSPECT_IN_LINES.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    text = found[0]
    if len(text) > 1 or text.isprintable() or category(text) == "Zs":  # no-break spaces
        return text
    return HIDDEN
