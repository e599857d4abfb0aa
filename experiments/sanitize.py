"""Sanitizes text of other machines for display: one line, without control characters."""

CHARACTERS_MAX = 1000


def sanitize(text: str) -> str:
    """The end of a text, where the important part is; unprintable characters become question marks."""
    line = " ".join(text.split())[-CHARACTERS_MAX:]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
