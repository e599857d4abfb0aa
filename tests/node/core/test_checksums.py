"""The CRC of two joined parts equals the CRC of the whole."""

from zlib import crc32

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.deliveries import combined_crc


@given(st.binary(max_size=300), st.binary(max_size=300))
def test_combined_crcs_equal_the_crc_of_the_whole(first, second):
    assert combined_crc(crc32(first), crc32(second), len(second)) == crc32(first + second)


@pytest.mark.parametrize("length", [0, 1, 65_530, 131_070, 1_000_003])
def test_combined_crcs_of_long_parts(length):
    first, second = b"running", bytes(range(251)) * (length // 251) + bytes(length % 251)
    assert combined_crc(crc32(first), crc32(second), length) == crc32(first + second)
