"""What is captured: where, and how much of each packet."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from topologies.strict import SizeBytes, StrictModel

FULL = "full"
NONE = "none"
SNAPLEN_BYTES_MIN = 96  # headers of Ethernet, IPv6 and TCP with options


def _unless_full(given: Any) -> Any:
    return None if given == FULL else given


Snaplen = Annotated[
    SizeBytes | None,
    Field(ge=SNAPLEN_BYTES_MIN, le=262_144),
    BeforeValidator(_unless_full),
    WithJsonSchema({"type": "string", "default": FULL, "examples": [FULL, "128B"]}),
]


class Captures(StrictModel):
    """Capture settings. `captures: none` captures nothing: the run then rests on the deliveries alone."""

    snaplen_bytes: Snaplen = None
    """How much of each packet is kept: full, or a size. Cut packets cannot be decoded into messages."""
    where: tuple[Literal["hosts", "gateways"], ...] = ("hosts", "gateways")
    """hosts: every node's interface. gateways: both sides of every wide-area link."""

    @model_validator(mode="before")
    @classmethod
    def _none(cls, given: Any) -> Any:
        return {"where": []} if given == NONE else given
