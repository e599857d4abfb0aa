"""Messages decode as they were encoded; an inconsistent body is an error and never a crash."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.epochs import EPOCH_MAX, SEQ_MAX, first_seq_of_epoch
from node.core.errors import RemoteProtocolError
from node.core.framing import HEADER_BYTES, Frame, frames_in
from node.core.message_layout import wire_name
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.storage.batches import cut_before, pack_events, tombstone, unpack_events

u32, seq = st.integers(0, 2**32 - 1), st.integers(1, SEQ_MAX)
WIDTHS = {"B": 1, "H": 2, "I": 4, "Q": 8}
NUMBERS = {letter: st.integers(0, 256**width - 1) for letter, width in WIDTHS.items()}
NARROW = {  # fields whose values are checked
    "role": st.sampled_from(wire.Role),
    "predicate": st.sampled_from(wire.Predicate),
    "standing": st.sampled_from(wire.Standing),
    "number": st.integers(0, wire.NUMBER_MAX),
    "first_request": st.integers(1, wire.NUMBER_MAX),
    "name": st.text(min_size=1, max_size=60),
    "reason": st.text(max_size=80),
    **dict.fromkeys(("cnt", "first_seq", "next", "last"), seq),
}
some_events = st.lists(st.binary(max_size=40), min_size=1, max_size=20)


@st.composite
def made(draw, layout):
    """Generate a message or a row of this layout that passes its own check."""
    given = {field.name: draw(NARROW.get(field.name, NUMBERS[field.format])) for field in layout.fields}
    if layout.tail and layout.tail.kind == "text":
        given[layout.tail_name] = draw(NARROW[layout.tail_name])
    elif layout.tail and layout.tail.kind == "rows":
        rows = draw(st.lists(made(layout.row), max_size=9, unique=True))
        given[layout.tail_name] = tuple(rows)
    elif layout.tail:
        events = draw(some_events)
        size, payload = pack_events(events)
        if layout.message is wire.SparseEvents:
            reaches = st.lists(st.integers(1, 2**32 - 1), min_size=len(events), max_size=len(events))
            payload = struct.pack(f">{len(events)}I", *draw(reaches)) + payload
        kind = wire.EventKind.GC if given["predicate"] else wire.EventKind.DATA
        given |= {"kind": kind, "count": len(events), "event_bytes": size, "payload": payload}
    if layout.message is wire.Request:
        given["next"], given["cnt"] = sorted((given["next"], given["cnt"]))
    if layout.message is wire.Configuration:
        given["replicas"] = draw(chains)
    return layout.message(**given)


chains = st.builds(
    lambda members, joins: tuple(
        wire.Replica(
            index,
            wire.Standing.JOINING if joins and at == len(members) - 1 else wire.Standing.MEMBER,
            incarnation,
        )
        for at, (index, incarnation) in enumerate(members.items())
    ),
    st.dictionaries(u32, NUMBERS["Q"], max_size=9),
    st.booleans(),
)
batches = made(wire.CODEC.by_name["EVENTS"])
messages = st.one_of(
    *map(made, wire.CODEC.by_type.values()),
    st.builds(tombstone, u32, st.integers(1, 2**31), st.integers(2**31, 2**32 - 1)),
)


def body_of(message) -> memoryview:
    return memoryview(b"".join(wire.CODEC.encode(message)))[HEADER_BYTES:]


@given(st.lists(messages, max_size=8))
def test_encoded_messages_decode_unchanged(sent):
    data = b"".join(buffer for message in sent for buffer in wire.CODEC.encode(message))
    assert [wire.CODEC.decode(frame) for frame in frames_in(data)] == sent


@given(messages)
def test_the_size_is_known_without_encoding(message):
    assert wire.CODEC.size_bytes(message) == sum(map(len, wire.CODEC.encode(message)))


@given(st.integers(0, 255), st.binary(max_size=200))
def test_any_body_of_any_type_is_a_message_or_a_protocol_error(message_type, body):
    view = memoryview(body)
    try:
        message = wire.CODEC.decode(Frame(message_type, view, view))
    except RemoteProtocolError:
        return
    assert bytes(body_of(message)) == body


@given(messages, st.data())
def test_a_shortened_body_is_a_message_or_a_protocol_error(message, data):
    body = body_of(message)
    view = body[: data.draw(st.integers(0, len(body)))]
    try:
        wire.CODEC.decode(Frame(wire.CODEC.by_name[wire_name(type(message))].type, view, view))
    except RemoteProtocolError:
        return


def test_every_field_of_every_message_has_a_meaning_and_every_head_a_fixed_size():
    for layout in wire.CODEC.by_type.values():
        assert all(field.meaning for field in (*layout.fields, *layout.row_fields)), layout.name
        assert layout.head.size == sum(struct.calcsize(">" + field.format) for field in layout.fields)


@pytest.mark.parametrize(
    "wrong",
    [
        wire.Hello(9, 1, "r0/proxy-0"),
        wire.Hello(0, 1, ""),
        wire.Events(4, 0, 1, 1, 1, 1, 0, 0, b"x"),
        wire.Events(3, 0, 1, 1, 1, 0, 1, 0, b""),
        wire.Events(3, 0, 1, 1, 0, 0, 1, 0, b"an epoch begins with nothing"),
        wire.Events(3, 0, 1, first_seq_of_epoch(1), 0, 0, 1, 0, b""),
        wire.Events(3, 0, 1, 1, 0, 0, EPOCH_MAX + 1, 0, b""),
        wire.Events(0, 0, 1, 0, 1, 1, 0, 0, b"x"),
        wire.Events(0, 0, 1, 1, 0, 1, 0, 0, b""),
        wire.Events(0, 0, 1, 1, 2, 10, 0, 0, b"only ten b"),
        wire.Events(0, 0, 1, 1, 2, 0, 0, 0, b"\0\0\0\1"),
        wire.Events(0, 0, 1, 1, 1, 0, 0, 0, b"\xff\xff\xff\xffx"),
        wire.Events(2, 0, 1, 1, 5, 0, 0, 0, b"tombstones carry nothing"),
        wire.Events(0, 0, 1, SEQ_MAX + 1, 1, 1, 0, 0, b"x"),
        wire.Advertisement((wire.Counter(0, 5), wire.Counter(1, SEQ_MAX + 1))),
        wire.Subscribe(0, 2**64 - 1),
        wire.Notify((wire.Counter(0, SEQ_MAX + 1),)),
        wire.Request(0, 1, SEQ_MAX + 1),
        wire.Answered(0, SEQ_MAX + 1, 0, 0),
        wire.Answered(0, 0, SEQ_MAX + 1, 0),
        wire.Answered(0, 0, 0, SEQ_MAX + 1),
        wire.Publication(0, SEQ_MAX + 1, 1, 1, 1, "r0/driver-0"),
        wire.Published(0, 1, SEQ_MAX + 1, 1),
        wire.Follow(1, (wire.Counter(0, SEQ_MAX + 1),)),
        wire.Stored((wire.Counter(0, SEQ_MAX + 1),)),
        wire.Status(1, SEQ_MAX + 1, wire.DiskState.WORKS),
        wire.Configuration(2**64 - 1, 0, ()),
        wire.Configuration(
            1, 0, (wire.Replica(0, wire.Standing.MEMBER, 1), wire.Replica(0, wire.Standing.MEMBER, 1))
        ),
        wire.Configuration(
            1, 0, (wire.Replica(0, wire.Standing.JOINING, 1), wire.Replica(1, wire.Standing.MEMBER, 1))
        ),
        wire.Configuration(1, 0, (wire.Replica(0, 2, 1),)),
        wire.Publish(2, 0, 1, 1, 1, 1, 0, b"x"),
        wire.Publish(0, 0, 1, 0, 1, 1, 0, b"x"),
        wire.Publish(0, 0, 1, 1, 1, 2, 0, b"x"),
    ],
)
def test_inconsistent_messages_are_refused(wrong):
    layout = wire.CODEC.by_name[wire_name(type(wrong))]
    body = body_of(wrong)
    with pytest.raises(RemoteProtocolError):
        wire.CODEC.decode(Frame(layout.type, body, body))


@given(some_events)
def test_packed_events_unpack_unchanged(events):
    event_bytes, payload = pack_events(events)
    assert unpack_events(len(events), event_bytes, memoryview(payload)) == events


@given(batches, st.data())
def test_a_cut_batch_is_the_rest_of_its_events(batch, data):
    skipped = data.draw(st.integers(0, batch.count - 1))
    rest = cut_before(batch, batch.first_seq + skipped - 1)
    events = unpack_events(batch.count, batch.event_bytes, batch.payload)
    assert unpack_events(rest.count, rest.event_bytes, rest.payload) == events[skipped:]
    assert rest.first_seq == batch.first_seq + skipped


def test_a_cut_tombstone_covers_the_rest_of_its_range():
    assert cut_before(wire.Events(wire.EventKind.TOMBSTONE, 0, 1, 11, 10, 0, 0, 0, b""), 15) == wire.Events(
        wire.EventKind.TOMBSTONE, 0, 1, 16, 5, 0, 0, 0, b""
    )
