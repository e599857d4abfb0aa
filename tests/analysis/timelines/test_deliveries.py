"""Each kind of wrong delivery is caught, on hand-written histories, and good ones pass."""

from zlib import crc32

import pyarrow as pa
import pytest

from analysis.errors import AnalysisError
from analysis.timelines import schemas
from analysis.timelines.deliveries import check_stream
from analysis.timelines.records import read_file
from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from tests.analysis.timelines.world import ZERO, S, facts_of

BATCHES = [(1, 10), (11, 5), (16, 10), (26, 1)]  # first sequence number, count


def content(first_seq, count):
    return b"".join(b"%08d" % seq for seq in range(first_seq, first_seq + count))


def records(host, kind, batches, *, session=0, content=content, running=None, t_s=1.0):
    """Rows in order; `running` starts from that CRC instead of a session's 0."""
    rows, crc = [], running or 0
    for number, (first_seq, count) in enumerate(batches):
        data = content(first_seq, count)
        crc = crc32(data, crc)
        rows.append(
            {
                "host": host, "session": session, "position": len(rows), "kind": int(kind), "stream": 0,
                "first_seq": first_seq, "count": count, "t_ns": ZERO + round((t_s + number) * S),
                "batch_crc": 0 if kind is RecordKind.TOMBSTONE else crc32(data), "running_crc": crc,
            }
        )  # fmt: skip
    return rows


def check(got, published=None, **facts):
    """The row for one client that got these batches."""
    published = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES) if published is None else published
    tables = [pa.Table.from_pylist(rows, schema=schemas.RECORDS) for rows in (published, got)]
    return check_stream(facts_of(**facts), 0, "r1-client-0", *tables)


def client(batches, **more):
    return records("r1-client-0", more.pop("kind", RecordKind.DELIVERED), batches, **more)


def faults_of(row):
    """What is wrong, without the zeros."""
    names = ("lost", "duplicated", "out_of_order", "corrupted", "unverified")
    return {name: row[name] for name in names if row[name]}


def test_everything_once_in_order_with_the_right_bytes_is_fine():
    row = check(client(BATCHES))
    assert faults_of(row) == {}
    assert (row["published"], row["delivered"]) == (26, 26)
    assert row["digest"] == row["published_digest"]


def test_a_missing_batch_is_lost():
    assert faults_of(check(client([*BATCHES[:1], *BATCHES[2:]])))["lost"] == 5


def test_a_client_that_got_nothing_lost_everything():
    assert faults_of(check([])) == {"lost": 26}


def test_a_batch_that_comes_again_is_duplicated():
    assert faults_of(check(client([*BATCHES, BATCHES[1]]))) == {"duplicated": 5}


def test_a_batch_that_comes_late_is_out_of_order():
    assert faults_of(check(client([BATCHES[0], BATCHES[2], BATCHES[1], BATCHES[3]]))) == {"out_of_order": 5}


def test_a_batch_that_reaches_back_is_partly_duplicated():
    row = check(client([(1, 10), (6, 10), (16, 10), (26, 1)]))
    assert row["duplicated"] == 5
    assert row["out_of_order"] == 0


def test_other_bytes_are_corrupted():
    def bent(first_seq, count):
        return content(first_seq, count)[:-1] + b"!" if first_seq == 16 else content(first_seq, count)

    assert faults_of(check(client(BATCHES, content=bent))) == {"corrupted": 10}


def test_bytes_that_were_delivered_but_not_recorded_show_in_the_running_crc():
    rows = client(BATCHES[:2]) + client(BATCHES[2:], running=1234)
    for number, row in enumerate(rows):
        row["position"] = number
    assert faults_of(check(rows)) == {"corrupted": 10}


def test_what_nobody_published_is_corrupted():
    row = check(client([*BATCHES, (27, 4)]))
    assert faults_of(row) == {"corrupted": 4}
    assert row["delivered"] == 30


def test_after_a_crash_unrecorded_publications_are_only_unverified():
    assert faults_of(check(client([*BATCHES, (27, 4)]), outcome="crashed")) == {"unverified": 4}


def test_a_driver_that_was_killed_may_have_published_more_than_it_recorded():
    kill = ("faults=[{name: dead, at: 7s, kill: r0/driver-0}]", "expect=[]")
    published = pa.Table.from_pylist(
        records("r0-driver-0", RecordKind.PUBLISHED, BATCHES), schema=schemas.RECORDS
    )
    got = pa.Table.from_pylist(client([*BATCHES, (27, 4)]), schema=schemas.RECORDS)
    assert faults_of(check_stream(facts_of(*kill), 0, "r1-client-0", published, got)) == {"unverified": 4}


def test_other_batches_than_published_cannot_be_verified():
    assert faults_of(check(client([(1, 15), (16, 10), (26, 1)]))) == {"unverified": 15}


def test_a_new_session_may_get_everything_again():
    assert faults_of(check([*client(BATCHES), *client(BATCHES, session=1)])) == {}


def test_what_only_one_session_got_is_not_lost():
    row = check([*client(BATCHES[:2]), *client(BATCHES[2:], session=1)])
    assert row["lost"] == 0


def test_a_tombstone_stands_for_its_events():
    rows = [*client(BATCHES[:1]), *client([(11, 5)], kind=RecordKind.TOMBSTONE), *client(BATCHES[2:])]
    assert faults_of(check(rows)) == {}


def test_disorder_counts_for_the_fault_before_it():
    row = check(
        client([*BATCHES, BATCHES[1], BATCHES[0]], t_s=2.5)
    )  # at 6.5 s and 7.5 s; the faults at 5 s and 9 s
    assert row["duplicated_after"] == [15, 0]
    assert row["out_of_order_after"] == [0, 0]


def test_only_what_came_while_drivers_ran_counts_for_throughput():
    row = check(client(BATCHES, t_s=12.5))  # 12.5, 13.5, 14.5, 15.5 s; the drivers stop at 14 s
    assert row["delivered_while_running"] == 15
    assert row["delivered"] == 26


def test_files_are_read_up_to_a_torn_record(tmp_path):
    path = tmp_path / "r1-client-0.deliveries"
    session = DeliveryRecord(0, 0, 0, ZERO, 0, 0, RecordKind.SESSION, 0)
    first = DeliveryRecord(3, 10, 1, ZERO + 5, 0xFFFFFFFF, 7, RecordKind.DELIVERED, 10)
    whole = [encode_record(record) for record in (session, first, session, first)]
    path.write_bytes(encode_file_header() + b"".join(whole) + whole[1][:-1])
    rows = read_file("r1-client-0", path).to_pylist()
    assert [(row["session"], row["kind"]) for row in rows] == [(0, 2), (0, 0), (1, 2), (1, 0)]
    assert rows[1] == {
        "host": "r1-client-0", "session": 0, "position": 1, "kind": 0, "stream": 3, "first_seq": 1,
        "count": 10, "t_ns": ZERO + 5, "batch_crc": 0xFFFFFFFF, "running_crc": 7,
    }  # fmt: skip


@pytest.mark.parametrize("size", [0, 7, 16])
def test_a_file_without_records_has_no_rows(tmp_path, size):
    path = tmp_path / "x.deliveries"
    path.write_bytes(encode_file_header()[:size])
    assert read_file("x", path).num_rows == 0


def test_another_kind_of_file_is_refused(tmp_path):
    path = tmp_path / "x.deliveries"
    path.write_bytes(b"no such thing at all")
    with pytest.raises(AnalysisError, match=r"x\.deliveries"):
        read_file("x", path)
