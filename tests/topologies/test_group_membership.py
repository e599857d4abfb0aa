"""A host's IGMPv3 reports give the groups that it has joined (RFC 3376, section 5.1)."""

import socket
import struct

import pytest

from topologies.group_membership import JoinedGroups

TO_INCLUDE, TO_EXCLUDE, ALLOW, BLOCK = 3, 4, 5, 6
NUMBER = 0xEF01_0203  # 239.1.2.3
Record = tuple[int, list[str]]


def report(*records: Record) -> bytes:
    rows = b"".join(
        struct.pack(">BBHI", kind, 0, len(sources), NUMBER) + b"".join(map(socket.inet_aton, sources))
        for kind, sources in records
    )
    return struct.pack(">BBHHH", 0x22, 0, 0, 0, len(records)) + rows


@pytest.mark.parametrize(
    ("records", "changes"),
    [
        ([(TO_EXCLUDE, []), (TO_EXCLUDE, []), (TO_INCLUDE, []), (TO_INCLUDE, [])], [True, False]),
        ([(TO_EXCLUDE, []), (BLOCK, ["10.0.0.1"]), (TO_INCLUDE, [])], [True, False]),
        ([(ALLOW, ["10.0.0.1", "10.0.0.2"]), (BLOCK, ["10.0.0.1"]), (BLOCK, ["10.0.0.2"])], [True, False]),
        ([(ALLOW, ["10.0.0.1"]), (TO_EXCLUDE, ["10.0.0.1"]), (TO_INCLUDE, ["10.0.0.2"])], [True]),
        ([(TO_INCLUDE, [])], []),
        ([(9, ["10.0.0.1"])], []),
    ],
)
def test_a_host_is_a_member_while_it_accepts_any_source(records: list[Record], changes: list[bool]) -> None:
    expected = [(NUMBER, joined) for joined in changes]
    assert JoinedGroups().take(report(*records)) == expected
    one_by_one = JoinedGroups()
    assert [change for each in records for change in one_by_one.take(report(each))] == expected


def test_the_complete_records_of_a_truncated_report_count() -> None:
    whole = report((TO_EXCLUDE, []), (ALLOW, ["10.0.0.1"]))
    for length in range(len(whole) + 1):
        assert JoinedGroups().take(whole[:length]) == ([(NUMBER, True)] if length >= 16 else [])


def test_other_messages_are_ignored() -> None:
    assert JoinedGroups().take(bytes([0x16, 0, 0, 0, *NUMBER.to_bytes(4, "big")])) == []
