"""Names of regions: letters, digits and hyphens, as in host names (RFC 1123), which derive from them.

Case is kept, and two regions may not differ only in case.
"""

import re
import unicodedata

PATTERN = "[A-Za-z][A-Za-z0-9]*(-[A-Za-z0-9]+)*"
WORDS = "a letter, then letters and digits, with single hyphens between them"
LENGTH_MAX = 30
"""`REGION-ROLE-NUMBER` fits the 64 characters of a host name (gethostname(2))."""

_WITHOUT_DECOMPOSITION = str.maketrans(
    {"\u00f8": "o", "\u00d8": "O", "\u0142": "l", "\u0141": "L", "\u0111": "d", "\u0131": "i", "\u00df": "ss"}
    | {"\u00e6": "ae", "\u00c6": "Ae", "\u0153": "oe"}
)


def region_name(written: str) -> str:
    """Return the nearest valid name of a region; "" if the text has neither letters nor digits of ASCII."""
    decomposed = unicodedata.normalize("NFKD", written.translate(_WITHOUT_DECOMPOSITION))
    plain = "".join(each for each in decomposed if not unicodedata.combining(each))
    name = re.sub(r"[^A-Za-z0-9]+", "-", plain).strip("-")
    if name and not name[0].isalpha():
        name = f"r{name}"
    return name[:LENGTH_MAX].rstrip("-")
