"""Every byte of a message belongs to one field, whose value is that of the codec."""

from dataclasses import fields

from hypothesis import given

from analysis.inspect.packets.dissect import CapturedBytes, dissect
from node.core.framing import HEADER_BYTES
from node.protocols.sprinkler.messages import CODEC, Advertisement, Counter, Refused, SparseEvents, Subscribe
from tests.analysis.messages.examples import message


def parts_of(data, known=None):
    return list(dissect(CapturedBytes(data, bytes([1]) * len(data) if known is None else known), CODEC))


def encoded(sent):
    return b"".join(CODEC.encode(sent))


@given(message())
def test_dissected_fields_cover_all_bytes_in_order(sent):
    data = encoded(sent)
    at = 0
    for part in parts_of(data):
        assert part.offset == at
        assert part.content.data == data[at : at + len(part.content.data)]
        at += len(part.content.data)
    assert at == len(data)


@given(message())
def test_head_fields_have_the_values_that_were_sent(sent):
    found = {part.name: part.value for part in parts_of(encoded(sent))}
    layout = CODEC.by_name[CODEC._by_class[type(sent)].name]
    for field in fields(sent):
        if field.name != layout.tail_name:
            assert found[field.name] == getattr(sent, field.name)


def said(data, known=None):
    return [
        (part.offset, "".join(part.octets(0, 99)), part.name, part.value, part.unit, part.meaning)
        for part in parts_of(data, known)
    ]


HEADER = [
    (0, "00000010", "length", 16, "bytes", ""),
    (4, "01", "version", 1, "", ""),
    (5, "03", "type", 3, "", "SUBSCRIBE"),
    (6, "0000", "flags", 0, "", ""),
]


def test_numbers_have_units():
    assert said(encoded(Subscribe(2, 48209))) == [
        *HEADER,
        (8, "00000002", "stream", 2, "", ""),
        (12, "000000000000bc51", "cnt", 48209, "seq", ""),
    ]


def test_rows_are_numbered():
    names = [part.name for part in parts_of(encoded(Advertisement((Counter(0, 7), Counter(3, 9)))))]
    assert names[4:] == ["counters[0].stream", "counters[0].cnt", "counters[1].stream", "counters[1].cnt"]


def test_values_with_names_are_named_and_text_is_text():
    found = said(encoded(Refused(2, 5, 0, "not mine")))
    assert found[4] == (8, "0002", "code", 2, "", "not owner")
    assert found[-1] == (22, b"not mine".hex(), "reason", "not mine", "", "")


def test_numbers_before_a_payload_are_apart_from_it():
    payload = b"\0\0\0\1\0\0\0\5" + b"\0\0\0\2\0\0\0\1" + b"abc"
    found = said(encoded(SparseEvents(0, 0, 1, 1, 2, 0, 0, 0, payload)))
    assert [each[2:5] for each in found[-5:]] == [
        ("reaches[0]", 1, "events"),
        ("reaches[1]", 5, "events"),
        ("sizes[0]", 2, "bytes"),
        ("sizes[1]", 1, "bytes"),
        ("payload", 3, "bytes"),
    ]


def test_uncaptured_fields_have_no_value():
    data = encoded(Subscribe(2, 48209))
    found = said(data, bytes([1] * 15 + [0] * 5))
    assert found[-2:] == [
        (8, "00000002", "stream", 2, "", ""),
        (12, "000000..........", "cnt", None, "seq", ""),
    ]


def test_a_body_that_does_not_fit_its_type_is_shown_raw():
    assert said(encoded(Subscribe(2, 1))[: HEADER_BYTES + 3])[-1] == (8, "000000", "body", 3, "bytes", "")
    unknown = said(b"\0\0\0\6\1\xee\0\0ab")
    assert unknown[2] == (5, "ee", "type", 0xEE, "", "")
    assert unknown[-1] == (8, "6162", "body", 2, "bytes", "")
    assert said(b"\0\0") == [(0, "0000", "header", 2, "bytes", "")]
