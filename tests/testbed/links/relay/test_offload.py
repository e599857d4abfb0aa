"""Cutting an offloaded frame gives just the frames that its sender's kernel would have made of it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from testbed.links.relay.offload import VNET_BYTES, cut, segmentation
from tests.testbed.links.relay.vnet_frames import Sent, small

CHECKSUM_OFFSET = {"tcp": 16, "udp": 6}


def assert_same(got: bytes, expected: bytes, transport: str, version: int) -> None:
    """Equal, but that one's complement has two zeros."""
    at = VNET_BYTES + 14 + (20 if version == 4 else 40) + CHECKSUM_OFFSET[transport]
    assert got[:at] == expected[:at]
    assert int.from_bytes(got[at : at + 2]) % 0xFFFF == int.from_bytes(expected[at : at + 2]) % 0xFFFF
    assert got[at + 2 :] == expected[at + 2 :]


@given(
    size=st.integers(2, 6000),
    segment=st.integers(100, 1448),
    sequence=st.sampled_from([0, 1000, 2**32 - 1000]),
    identification=st.sampled_from([0, 65534]),
    flags=st.sampled_from(["A", "PA", "FA", "FPA", "CA", "CPA"]),
    transport=st.sampled_from(["tcp", "udp"]),
    version=st.sampled_from([4, 6]),
    data=st.data(),
)
def test_a_part_of_a_frame_is_what_the_kernel_would_have_cut(
    size: int,
    segment: int,
    sequence: int,
    identification: int,
    flags: str,
    transport: str,
    version: int,
    data: st.DataObject,
) -> None:
    sent = Sent(
        bytes(n % 251 for n in range(size)), segment, transport, version, sequence, identification, flags
    )
    frame = sent.frame()
    where = segmentation(frame)
    if size > segment:
        assert where.segments == -(-size // segment)
    first = data.draw(st.integers(0, where.segments - 1))
    end = data.draw(st.integers(first + 1, where.segments))
    if where.segments == 1:
        assert cut(frame, where, 0, 1) is frame
    else:
        assert_same(cut(frame, where, first, end), sent.part(first, end).frame(), transport, version)


@given(st.integers(1, 65000), st.integers(100, 1448))
def test_parts_weigh_as_much_as_their_segments_on_the_wire(size: int, segment: int) -> None:
    frame = Sent(bytes(size), segment).frame()
    where = segmentation(frame)
    alone = [where.wire_bytes(frame, n, n + 1) for n in range(where.segments)]
    assert sum(alone) == where.wire_bytes(frame, 0, where.segments)
    if where.segments > 1:
        assert alone == [len(cut(frame, where, n, n + 1)) - VNET_BYTES for n in range(where.segments)]


def test_the_ip_header_of_a_part_has_a_valid_checksum() -> None:
    frame = Sent(bytes(5000)).frame()
    packet = Ether(cut(frame, segmentation(frame), 1, 3)[VNET_BYTES:])
    given_checksum = packet[IP].chksum
    del packet[IP].chksum
    assert Ether(bytes(packet))[IP].chksum == given_checksum


@pytest.mark.parametrize("size", [14, 60, 1514])
def test_a_frame_that_is_not_offloaded_is_its_own_one_segment(size: int) -> None:
    frame = small(size)
    where = segmentation(frame)
    assert where.segments == 1
    assert where.wire_bytes(frame, 0, 1) == size
    assert cut(frame, where, 0, 1) is frame
