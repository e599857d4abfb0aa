"""What programs of ours answer on machines: JSON that is checked before anything is done with it.

A machine may run anything, so nothing is taken for granted of what it says, and nothing of it reaches a
terminal as it is.
"""

from typing import Annotated, TypeVar

from pydantic import AfterValidator, Field, TypeAdapter, ValidationError

from testbed.errors import TestbedError
from testbed.one_line import one_line

Said = Annotated[str, AfterValidator(one_line)]
"""Text that can be shown."""
Amount = Annotated[int, Field(ge=0, lt=1 << 63)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]

_Answer = TypeVar("_Answer")


def read_answer(kind: TypeAdapter[_Answer], line: bytes) -> _Answer:
    """Raises TestbedError if a line is not what the program answers."""
    try:
        return kind.validate_json(line, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise TestbedError(
            one_line(f"its answer makes no sense: {where + ': ' if where else ''}{first['msg']}")
        ) from None
