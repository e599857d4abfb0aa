"""Text of another machine as one line that can be shown: nothing in it that a terminal would act on."""

CHARACTERS_MAX = 1000


def one_line(text: str) -> str:
    """The end of a text, where what matters stands; what cannot be printed becomes a question mark."""
    line = " ".join(text.split())[-CHARACTERS_MAX:]
    return "".join(letter if letter.isprintable() else "?" for letter in line)
