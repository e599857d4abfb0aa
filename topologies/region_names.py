"""Names of regions from names as people and other files write them."""

import re
import unicodedata

LENGTH_MAX = 20


def region_name(written: str) -> str:
    """Return the nearest valid name of a region; "" if the text has neither letters nor digits."""
    plain = unicodedata.normalize("NFKD", written).encode("ascii", "ignore").decode()
    name = re.sub(r"[^a-z0-9]", "", plain.lower())
    if not name:
        return ""
    return (name if name[0].isalpha() else f"r{name}")[:LENGTH_MAX]
