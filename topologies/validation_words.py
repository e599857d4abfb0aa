"""What pydantic finds wrong with a value, in words for whoever wrote the file."""

import contextlib
import re

from pydantic_core import ErrorDetails

from topologies.quantities import BY_SUFFIX, QuantityError

_SUBJECT = re.compile("(Input|String|Tuple|List|Dictionary) (?=should )")
_KINDS = {"a valid tuple": "a list", "a valid list": "a list", "a valid dictionary": "a mapping of fields"}
_LIMITS = ("ge", "gt", "le", "lt")


def said_of(details: ErrorDetails, written: object) -> str:
    """`should be greater than or equal to 10s, not '5s'`. written: the value as it stands in the file."""
    if details["type"] == "missing":
        return "is missing"
    message = details["msg"].removeprefix("Value error, ").removeprefix("Assertion failed, ")
    if message.startswith("Input should"):
        message = _with_unit(message, details, written) or f"{message}, not {details['input']!r:.40}"
    message = _SUBJECT.sub("", message, count=1).replace(" after validation", "")
    for kind, word in _KINDS.items():
        message = message.replace(kind, word)
    return message


def _with_unit(message: str, details: ErrorDetails, written: object) -> str | None:
    """What is said of a quantity beyond a limit, both as people write them; None of anything else."""
    limits = [value for key, value in details.get("ctx", {}).items() if key in _LIMITS]
    for quantity in BY_SUFFIX if limits else ():
        with contextlib.suppress(QuantityError):
            quantity.parse(written)
            return f"{message.replace(str(limits[0]), quantity.format(limits[0]))}, not {written!r:.40}"
    return None
