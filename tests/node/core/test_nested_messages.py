"""A message may contain another one of its codec: it decodes unchanged, and the depth is bounded."""

from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from node.core.errors import RemoteProtocolError
from node.core.framing import Frame, frames_in
from node.core.message_layout import NESTED_MAX, Codec, Field, TailField, numbered


@dataclass(frozen=True, slots=True)
class Note:
    """A message."""

    text: Annotated[str, TailField("text", "its text")]


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message that contains another one."""

    hops: Annotated[int, Field("B", "", "how far it came")]
    message: Annotated[Any, TailField("message", "what is in it")]


CODEC = Codec(numbered((Note, Envelope)))


def wrapped(times):
    message = Note("hello")
    for hops in range(times):
        message = Envelope(hops, message)
    return message


def decoded(data):
    [frame] = frames_in(data)
    return CODEC.decode(frame)


@pytest.mark.parametrize("times", range(NESTED_MAX + 1))
def test_nested_messages_decode_unchanged(times):
    data = b"".join(CODEC.encode(wrapped(times)))
    assert len(data) == CODEC.size_bytes(wrapped(times))
    assert decoded(data) == wrapped(times)


def test_too_deeply_nested_messages_are_refused():
    for times in (NESTED_MAX + 1, 900):
        body = b"".join(CODEC.encode(wrapped(1)))[8:]
        data = memoryview(body[:1] + (b"\x02" + body[:1]) * times + b"\x01hello")
        with pytest.raises(RemoteProtocolError, match="within each other"):
            CODEC.decode(Frame(2, data, data))


@pytest.mark.parametrize("body", [b"\x00", b"\x00\x09", b"\x00\x02"])
def test_an_envelope_without_a_message_is_refused(body):
    with pytest.raises(RemoteProtocolError):
        CODEC.decode(Frame(2, memoryview(body), memoryview(body)))


def test_two_messages_of_one_name_are_refused():
    with pytest.raises(TypeError, match="same name"):
        Codec(numbered((Note, Note)))
