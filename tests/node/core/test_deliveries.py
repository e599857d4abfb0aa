"""The record of deliveries reads back as written; torn ends and other files are detected."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.deliveries import (
    HEADER,
    RECORD,
    RECORD_FIELDS,
    DeliveryRecord,
    RecordKind,
    encode_file_header,
    encode_record,
    read_records,
    whole_bytes,
)

u32, u64 = st.integers(0, 2**32 - 1), st.integers(0, 2**64 - 1)
records = st.builds(DeliveryRecord, u32, u32, u64, u64, u32, u32, st.sampled_from(RecordKind), u32)


@given(st.lists(records, max_size=20), st.binary(max_size=RECORD.size - 1))
def test_records_are_read_as_written_and_a_torn_one_is_counted(written, torn):
    data = encode_file_header() + b"".join(map(encode_record, written)) + torn
    assert read_records(data) == (written, len(torn))
    assert whole_bytes(len(data)) == len(data) - len(torn)


@given(st.lists(records, min_size=1, max_size=20))
def test_numpy_reads_the_same_fields(written):
    data = encode_file_header() + b"".join(map(encode_record, written))
    table = np.frombuffer(data, dtype=list(RECORD_FIELDS), offset=HEADER.size)
    assert table["first_seq"].tolist() == [record.first_seq for record in written]
    assert table["kind"].tolist() == [record.kind for record in written]


@pytest.mark.parametrize("data", [b"", b"CUTDELIV", b"x" * 100])
def test_a_foreign_file_is_refused(data):
    with pytest.raises(ValueError, match="record of deliveries"):
        read_records(data)
