"""Messages decode as they were encoded; an inconsistent body is an error and never a crash."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.epochs import EPOCH_MAX, SEQ_MAX, first_seq_of_epoch
from node.core.errors import RemoteProtocolError
from node.core.framing import HEADER_BYTES, Frame, frames_in
from node.core.message_layout import wire_name
from node.protocols.sprinkler.messages import (
    CODEC,
    NUMBER_MAX,
    Advertisement,
    Answered,
    Configuration,
    Counter,
    DiskState,
    EventKind,
    Events,
    Follow,
    Hello,
    Notify,
    Predicate,
    Publication,
    Publish,
    Published,
    Replica,
    Request,
    Role,
    SparseEvents,
    Standing,
    Status,
    Stored,
    Subscribe,
)
from node.protocols.sprinkler.storage.batches import cut_before, pack_events, tombstone, unpack_events

u32, seq = st.integers(0, 2**32 - 1), st.integers(1, SEQ_MAX)
WIDTHS = {"B": 1, "H": 2, "I": 4, "Q": 8}
NUMBERS = {letter: st.integers(0, 256**width - 1) for letter, width in WIDTHS.items()}
NARROW = {  # fields whose values are checked
    "role": st.sampled_from(Role),
    "predicate": st.sampled_from(Predicate),
    "standing": st.sampled_from(Standing),
    "number": st.integers(0, NUMBER_MAX),
    "first_request": st.integers(1, NUMBER_MAX),
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
        if layout.message is SparseEvents:
            reaches = st.lists(st.integers(1, 2**32 - 1), min_size=len(events), max_size=len(events))
            payload = struct.pack(f">{len(events)}I", *draw(reaches)) + payload
        kind = EventKind.GC if given["predicate"] else EventKind.DATA
        given |= {"kind": kind, "count": len(events), "event_bytes": size, "payload": payload}
    if layout.message is Request:
        given["next"], given["cnt"] = sorted((given["next"], given["cnt"]))
    if layout.message is Configuration:
        given["replicas"] = draw(chains)
    return layout.message(**given)


chains = st.builds(
    lambda members, joins: tuple(
        Replica(index, Standing.JOINING if joins and at == len(members) - 1 else Standing.MEMBER, incarnation)
        for at, (index, incarnation) in enumerate(members.items())
    ),
    st.dictionaries(u32, NUMBERS["Q"], max_size=9),
    st.booleans(),
)
batches = made(CODEC.by_name["EVENTS"])
messages = st.one_of(
    *map(made, CODEC.by_type.values()),
    st.builds(tombstone, u32, st.integers(1, 2**31), st.integers(2**31, 2**32 - 1)),
)


def body_of(message) -> memoryview:
    return memoryview(b"".join(CODEC.encode(message)))[HEADER_BYTES:]


@given(st.lists(messages, max_size=8))
def test_encoded_messages_decode_unchanged(sent):
    data = b"".join(buffer for message in sent for buffer in CODEC.encode(message))
    assert [CODEC.decode(frame) for frame in frames_in(data)] == sent


@given(messages)
def test_the_size_is_known_without_encoding(message):
    assert CODEC.size_bytes(message) == sum(map(len, CODEC.encode(message)))


@given(st.integers(0, 255), st.binary(max_size=200))
def test_any_body_of_any_type_is_a_message_or_a_protocol_error(message_type, body):
    view = memoryview(body)
    try:
        message = CODEC.decode(Frame(message_type, view, view))
    except RemoteProtocolError:
        return
    assert bytes(body_of(message)) == body


@given(messages, st.data())
def test_a_shortened_body_is_a_message_or_a_protocol_error(message, data):
    body = body_of(message)
    view = body[: data.draw(st.integers(0, len(body)))]
    try:
        CODEC.decode(Frame(CODEC.by_name[wire_name(type(message))].type, view, view))
    except RemoteProtocolError:
        return


def test_every_field_of_every_message_has_a_meaning_and_every_head_a_fixed_size():
    for layout in CODEC.by_type.values():
        assert all(field.meaning for field in (*layout.fields, *layout.row_fields)), layout.name
        assert layout.head.size == sum(struct.calcsize(">" + field.format) for field in layout.fields)


@pytest.mark.parametrize(
    "wrong",
    [
        Hello(9, 1, "r0/proxy-0"),
        Hello(0, 1, ""),
        Events(4, 0, 1, 1, 1, 1, 0, 0, b"x"),
        Events(3, 0, 1, 1, 1, 0, 1, 0, b""),
        Events(3, 0, 1, 1, 0, 0, 1, 0, b"an epoch begins with nothing"),
        Events(3, 0, 1, first_seq_of_epoch(1), 0, 0, 1, 0, b""),
        Events(3, 0, 1, 1, 0, 0, EPOCH_MAX + 1, 0, b""),
        Events(0, 0, 1, 0, 1, 1, 0, 0, b"x"),
        Events(0, 0, 1, 1, 0, 1, 0, 0, b""),
        Events(0, 0, 1, 1, 2, 10, 0, 0, b"only ten b"),
        Events(0, 0, 1, 1, 2, 0, 0, 0, b"\0\0\0\1"),
        Events(0, 0, 1, 1, 1, 0, 0, 0, b"\xff\xff\xff\xffx"),
        Events(2, 0, 1, 1, 5, 0, 0, 0, b"tombstones carry nothing"),
        Events(0, 0, 1, SEQ_MAX + 1, 1, 1, 0, 0, b"x"),
        Advertisement((Counter(0, 5), Counter(1, SEQ_MAX + 1))),
        Subscribe(0, 2**64 - 1),
        Notify((Counter(0, SEQ_MAX + 1),)),
        Request(0, 1, SEQ_MAX + 1),
        Answered(0, SEQ_MAX + 1, 0, 0),
        Answered(0, 0, SEQ_MAX + 1, 0),
        Answered(0, 0, 0, SEQ_MAX + 1),
        Publication(0, SEQ_MAX + 1, 1, 1, 1, "r0/driver-0"),
        Published(0, 1, SEQ_MAX + 1, 1),
        Follow(1, (Counter(0, SEQ_MAX + 1),)),
        Stored((Counter(0, SEQ_MAX + 1),)),
        Status(1, SEQ_MAX + 1, DiskState.WORKS),
        Configuration(2**64 - 1, 0, ()),
        Configuration(1, 0, (Replica(0, Standing.MEMBER, 1), Replica(0, Standing.MEMBER, 1))),
        Configuration(1, 0, (Replica(0, Standing.JOINING, 1), Replica(1, Standing.MEMBER, 1))),
        Configuration(1, 0, (Replica(0, 2, 1),)),
        Publish(2, 0, 1, 1, 1, 1, 0, b"x"),
        Publish(0, 0, 1, 0, 1, 1, 0, b"x"),
        Publish(0, 0, 1, 1, 1, 2, 0, b"x"),
    ],
)
def test_inconsistent_messages_are_refused(wrong):
    layout = CODEC.by_name[wire_name(type(wrong))]
    body = body_of(wrong)
    with pytest.raises(RemoteProtocolError):
        CODEC.decode(Frame(layout.type, body, body))


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
    assert cut_before(Events(EventKind.TOMBSTONE, 0, 1, 11, 10, 0, 0, 0, b""), 15) == Events(
        EventKind.TOMBSTONE, 0, 1, 16, 5, 0, 0, 0, b""
    )
