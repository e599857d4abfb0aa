"""Cutting an offloaded frame gives exactly the frames of the sender's kernel."""

from hypothesis import given
from hypothesis import strategies as st

from testbed.links.relay.offload import VNET_BYTES, cut, segmentation
from tests.testbed.links.relay.vnet_frames import Sent

CHECKSUM_OFFSET = {"tcp": 16, "udp": 6}


def assert_same(got: bytes, expected: bytes, transport: str, version: int) -> None:
    """Assert equality, except that ones' complement has two zeros."""
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
def test_a_part_of_a_frame_equals_the_kernels_segmentation(
    size, segment, sequence, identification, flags, transport, version, data
):
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
