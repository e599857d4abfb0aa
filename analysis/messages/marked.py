"""The messages of a run as the analysis knows them: its system's codec, or events with markers for a system
of programs.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from experiments.declared import Declared
from node.core.declaration import Reading
from node.core.message_layout import SEQ, Codec, Field, TailField, numbered
from node.systems import codec_of, reading_of


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event that its publisher sends to the system: a payload that begins with a marker."""

    magic: Annotated[int, Field("I", "", "CutM")]
    stream: Annotated[int, Field("I", "", "the stream")]
    seq: Annotated[int, Field("Q", SEQ, "the event's number in its stream", columns=("first_seq",))]
    time: Annotated[int, Field("Q", "ns", "when it was published")]
    crc: Annotated[int, Field("I", "", "CRC-32 of the payload, this field as zero")]
    padding: Annotated[bytes, TailField("bytes", "zeros")]

    reads: ClassVar = ("s{stream}", "[{seq}]")


@dataclass(frozen=True, slots=True)
class PassedEvent(NewEvent):
    """An event that is forwarded to a subscriber or to another forwarder."""


MARKED = Codec(numbered((NewEvent, PassedEvent)))
NEW, PASSED = "NEW_EVENT", "PASSED_EVENT"
"""Types of rows: an event that its publisher sends to the system, and one that any process forwards."""
READING = Reading(carries=(PASSED,), publish=(NEW, NEW))


def known_codec(declared: Declared) -> Codec | None:
    """Return the codec of a system's messages; None if they cannot be decoded."""
    return MARKED if declared.shows_events else codec_of(declared.name)


def known_reading(declared: Declared) -> Reading:
    """Return how the analysis interprets a system's messages and logs."""
    return READING if declared.shows_events else reading_of(declared.name) or Reading()
