"""Each kind of wrong delivery is caught, on hand-written histories, and good ones pass."""

from functools import partial
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

from analysis.errors import AnalysisError
from analysis.timelines import schemas
from analysis.timelines.delivery.collecting import read_marks
from analysis.timelines.delivery.deliveries import delivery_table as check_clients
from analysis.timelines.delivery.delivery_records import read_file
from analysis.timelines.delivery.sequence_intervals import digest
from node.core.collection_marks import encode_mark, keys_of
from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from node.core.epochs import first_seq_of_epoch
from tests.analysis.timelines.world import ZERO, S, facts_of

BATCHES = [(1, 10), (11, 5), (16, 10), (26, 1)]  # first sequence number, count


def content(first_seq, count, of=0):
    return b"".join(b"%02d%08d" % (of, seq) for seq in range(first_seq, first_seq + count))


def records(host, kind, batches, *, session=0, content=content, running=None, t_s=1.0, stream=0):
    """Rows in order; `running` starts from that CRC instead of 0. A batch may say what it covers."""
    rows, crc = [], running or 0
    for number, (first_seq, count, *covered) in enumerate(batches):
        data = content(first_seq, count)
        crc = crc32(data, crc)
        rows.append(
            {
                "host": host, "session": session, "position": len(rows), "kind": int(kind), "stream": stream,
                "first_seq": first_seq, "count": count, "t_ns": ZERO + round((t_s + number) * S),
                "batch_crc": 0 if kind is RecordKind.TOMBSTONE else crc32(data), "running_crc": crc,
                "covered": covered[0] if covered else count,
            }
        )  # fmt: skip
    return rows


def check(got, published=None, overrides=(), clients=("r1-client-0",), marks=None, **metadata):
    """Return the row of stream 0 for one client with these batches."""
    published = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES) if published is None else published
    tables = [pa.Table.from_pylist(rows, schema=schemas.RECORDS) for rows in (published, got)]
    rows = check_clients(clients, *tables, facts_of(*overrides, **metadata), marks).to_pylist()
    return next(row for row in rows if row["client"] == clients[0] and row["stream"] == 0)


def client(batches, **more):
    return records("r1-client-0", more.pop("kind", RecordKind.DELIVERED), batches, **more)


def tombstones(batches, **more):
    return client(batches, kind=RecordKind.TOMBSTONE, **more)


def faults_of(row):
    """Return the non-zero error counts."""
    names = (
        "lost",
        "stray",
        "duplicated",
        "out_of_order",
        "resurrected",
        "corrupted",
        "unverified",
        "published_twice",
    )
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


def test_events_under_a_number_without_driver_record_were_published_twice():
    row = check(client([*BATCHES, (27, 4)]))
    assert faults_of(row) == {"duplicated": 4}
    assert row["delivered"] == 30


def test_after_a_crash_unrecorded_publications_are_only_unverified():
    assert faults_of(check(client([*BATCHES, (27, 4)]), outcome="crashed")) == {"unverified": 4}


KILLED_DRIVER = ("faults=[{name: dead, at: 7s, kill: r0/driver-0}]", "expect=[]")


def test_the_last_batches_of_a_killed_driver_may_be_there_without_an_answer():
    assert faults_of(check(client([*BATCHES, (27, 4)]), overrides=KILLED_DRIVER)) == {"unverified": 4}


def test_the_last_batches_of_a_killed_driver_may_be_there_only_once():
    def retried(first_seq, count):
        return content(27 if first_seq == 31 else first_seq, count)

    got = client([*BATCHES, (27, 4), (31, 4)], content=retried)
    assert faults_of(check(got, overrides=KILLED_DRIVER)) == {"unverified": 4, "duplicated": 4}


def test_an_acknowledged_batch_of_a_killed_driver_that_is_there_again_was_published_twice():
    def retried(first_seq, count):
        return content(16 if first_seq == 27 else first_seq, count)

    row = check(client([*BATCHES, (27, 10)], content=retried), overrides=KILLED_DRIVER)
    assert faults_of(row) == {"duplicated": 10}


def test_events_with_keys_may_be_equal():
    def retried(first_seq, count):
        return content(16 if first_seq == 27 else first_seq, count)

    got, keyed = client([*BATCHES, (27, 10)], content=retried), 'workload.keys={"distribution": "uniform"}'
    assert faults_of(check(got, overrides=(*KILLED_DRIVER, keyed))) == {"unverified": 10}


def test_other_batches_than_published_cannot_be_verified():
    assert faults_of(check(client([(1, 15), (16, 10), (26, 1)]))) == {"unverified": 15}


def test_a_new_session_may_get_everything_again():
    assert faults_of(check([*client(BATCHES), *client(BATCHES, session=1)])) == {}


def test_a_new_session_has_to_get_everything_again():
    row = check([*client(BATCHES[:2]), *client(BATCHES[2:], session=1)])
    assert row["lost"] == 15
    assert row["delivered"] == 26


RESTARTED = (
    "faults=[{name: dead, at: 7s, kill: r1/client-0}, {name: back, at: 8s, restart: r1/client-0}]",
    "expect=[]",
)


def test_a_client_that_was_started_again_and_got_nothing_lost_everything():
    assert faults_of(check(client(BATCHES), overrides=RESTARTED)) == {"lost": 26}


def test_an_ended_session_is_only_checked_for_holes():
    early = client([BATCHES[0], BATCHES[2]])
    assert faults_of(check([*early, *client(BATCHES, session=1)], overrides=RESTARTED)) == {"lost": 5}


@pytest.mark.parametrize("ended", ["kill", "leave"])
def test_a_departed_client_must_have_everything_until_then(ended):
    gone = (f"faults=[{{name: gone, at: 7s, {ended}: r1/client-0}}]", "expect=[]")
    assert faults_of(check(client(BATCHES[:2]), overrides=gone)) == {}
    assert faults_of(check(client([BATCHES[0], BATCHES[2]]), overrides=gone)) == {"lost": 5}
    assert faults_of(check([], overrides=gone)) == {}


def test_a_late_joiner_gets_everything_or_its_tombstone():
    late = ("faults=[{name: late, at: 7s, join: r1/client-0}]", "expect=[]", "workload.collect={last: 11}")
    assert faults_of(check(client(BATCHES), overrides=late)) == {}
    assert faults_of(check([*tombstones([(1, 14)]), *client([(15, 1), *BATCHES[2:]])], overrides=late)) == {
        "unverified": 1
    }
    assert faults_of(check(client(BATCHES[2:]), overrides=late)) == {"lost": 15}


def test_clients_and_streams_are_looked_at_apart():
    mine, others = client(BATCHES), records("r2-client-1", RecordKind.DELIVERED, BATCHES[1:])
    elsewhere = client([(1, 5)], stream=3)
    published = [
        *records("r0-driver-0", RecordKind.PUBLISHED, BATCHES),
        *records("r3-driver-0", RecordKind.PUBLISHED, [(1, 5), (6, 7)], stream=3),
    ]
    tables = [
        pa.Table.from_pylist(rows, schema=schemas.RECORDS)
        for rows in (published, [*mine, *elsewhere, *others])
    ]
    rows = check_clients(("r1-client-0", "r2-client-1"), *tables, facts_of()).to_pylist()
    assert [(row["client"], row["stream"], row["delivered"], row["lost"]) for row in rows] == [
        ("r1-client-0", 0, 26, 0), ("r1-client-0", 1, 0, 0), ("r1-client-0", 2, 0, 0),
        ("r1-client-0", 3, 5, 7), ("r2-client-1", 0, 16, 10), ("r2-client-1", 1, 0, 0),
        ("r2-client-1", 2, 0, 0), ("r2-client-1", 3, 0, 12),
    ]  # fmt: skip


# --- Collection

LAST_11 = ("workload.collect={last: 11}",)


def test_a_tombstone_stands_for_its_events():
    row = check([*tombstones([(1, 10)]), *client(BATCHES[1:])], overrides=LAST_11)
    assert faults_of(row) == {}
    assert (row["delivered"], row["tombstoned"], row["covered"]) == (16, 10, 26)
    assert row["digest"] == row["published_digest"]


def test_a_batch_with_tombstones_in_it_counts_both_and_cannot_be_verified():
    keys = ("workload.collect={same_key: 8}",)
    rows = [*client([(1, 4, 10)], kind=RecordKind.SPARSE), *client(BATCHES[1:])]
    row = check(rows, overrides=keys)
    assert faults_of(row) == {"unverified": 4}
    assert (row["delivered"], row["tombstoned"]) == (20, 6)


def test_the_last_events_may_not_be_collected():
    row = check([*client(BATCHES[:1]), *tombstones([(11, 5)]), *client(BATCHES[2:])], overrides=LAST_11)
    assert faults_of(row) == {"lost": 1}  # 15 = 26 - 11 is among the last


def test_without_a_rule_nothing_may_be_collected():
    assert faults_of(check([*tombstones([(1, 10)]), *client(BATCHES[1:])])) == {"lost": 10}


def test_an_event_after_its_tombstone_is_resurrected():
    row = check([*tombstones([(1, 10)]), *client(BATCHES)], overrides=LAST_11)
    assert faults_of(row) == {"resurrected": 10}


def test_a_new_session_may_see_what_an_earlier_one_saw_collected_only_as_collected():
    first = [*tombstones([(1, 10)]), *client(BATCHES[1:])]
    second = client(BATCHES, session=1)  # its own session never saw a tombstone
    assert faults_of(check([*first, *second], overrides=LAST_11)) == {}


def test_a_tombstone_over_what_came_before_is_nothing_wrong():
    row = check([*client(BATCHES[:2]), *tombstones([(1, 14)]), *client(BATCHES[2:])], overrides=LAST_11)
    assert faults_of(row) == {}
    assert row["tombstoned"] == 0


def test_by_age_only_old_enough_events_may_be_collected():
    by_age = ("workload.collect={older_than: 3s}", "workload.rate=6/s")  # acknowledged at 1, 2, 3, 4 s
    late = [*tombstones([(1, 15)], t_s=4.5), *client(BATCHES[2:], t_s=4.6)]
    assert faults_of(check(late, overrides=by_age)) == {}  # 4.5 s less 3 s, and a second of slack
    early = [*tombstones([(1, 15)], t_s=3.5), *client(BATCHES[2:], t_s=3.6)]
    assert faults_of(check(early, overrides=by_age)) == {"lost": 5}


def test_by_age_an_event_counts_from_its_first_holder():
    """Its publisher may be told late: in another region, behind a cut."""
    by_age = ("workload.collect={older_than: 3s}", "workload.rate=6/s")  # acknowledged at 1, 2, 3, 4 s
    other = records("r0-client-0", RecordKind.DELIVERED, BATCHES, t_s=0.1)
    late = [*tombstones([(1, 15)], t_s=3.5), *client(BATCHES[2:], t_s=3.6)]
    assert faults_of(check([*late, *other], overrides=by_age, clients=("r1-client-0", "r0-client-0"))) == {}


def test_by_age_an_event_counts_from_its_head():
    """A chain that stands still has it acknowledged late, and delivered late everywhere."""
    published = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES, t_s=3)
    got = [*tombstones([(1, 15)], t_s=4.5), *client(BATCHES[2:], t_s=4.6)]
    early, late = (("workload.collect={older_than: 3s}", f"workload.rate={rate}/s") for rate in (5, 4))
    assert faults_of(check(got, published, overrides=early)) == {}  # the eleventh was due after 2.2 s
    assert faults_of(check(got, published, overrides=late)) == {"lost": 5}  # after 2.75 s


def test_by_key_the_last_event_of_all_may_not_be_collected():
    keys = ("workload.collect={same_key: 8}",)
    row = check([*client(BATCHES[:3]), *tombstones([(26, 1)])], overrides=keys)
    assert faults_of(row) == {"lost": 1}


KEYED = ("workload.collect={same_key: 8}",)


def marked(tmp_path, *marks):
    """Write marks as a driver does: first number, whether its events collect, their keys."""
    path = tmp_path / "r0-driver-0.collection"
    data = [
        encode_mark(0, first, len(keys), collects=collects, keys=keys_of(keys, 2))
        for first, collects, keys in marks
    ]
    path.write_bytes(b"".join(data) + b"torn")
    return read_marks([path, tmp_path / "of another driver, who left none"])


def test_by_key_an_event_with_a_later_one_of_its_key_may_be_collected(tmp_path):
    marks = marked(tmp_path, (1, True, [b"aa"] * 10), (11, True, [b"aa"] * 16))
    got = [*tombstones([(1, 15)]), *client(BATCHES[2:])]
    assert faults_of(check(got, overrides=KEYED, marks=marks)) == {}


def test_by_key_the_last_event_with_its_key_may_not_be_collected(tmp_path):
    keys = [b"aa"] * 12 + [b"bb"] * 2 + [b"aa"] * 12  # 14 is the last one with bb
    marks = marked(tmp_path, (1, True, keys))
    got = [*tombstones([(1, 15)]), *client(BATCHES[2:])]
    assert faults_of(check(got, overrides=KEYED, marks=marks)) == {"lost": 1}
    sparse = [*client([(1, 2, 15)], kind=RecordKind.SPARSE), *client(BATCHES[2:])]
    assert "lost" not in faults_of(check(sparse, overrides=KEYED, marks=marks))
    empty = [*tombstones([(1, 10)]), *client([(11, 1, 5)], kind=RecordKind.SPARSE), *client(BATCHES[2:])]
    assert "lost" not in faults_of(check(empty, overrides=KEYED, marks=marks))


def test_by_key_an_event_that_collects_nothing_leaves_what_is_before_it(tmp_path):
    marks = marked(tmp_path, (1, False, [b"aa"] * 20), (21, True, [b"bb"] * 6))
    got = [*tombstones([(1, 15)]), *client(BATCHES[2:])]
    assert faults_of(check(got, overrides=KEYED, marks=marks)) == {"lost": 15}


def test_by_key_unmarked_events_of_a_killed_driver_may_have_collected(tmp_path):
    marks = marked(tmp_path, (1, True, [b"%02d" % number for number in range(26)]))
    got = [*tombstones([(1, 15)]), *client(BATCHES[2:])]
    assert faults_of(check(got, overrides=KEYED, marks=marks)) == {"lost": 15}
    row = check([*got, *client([(27, 1)])], overrides=KEYED, marks=marks, outcome="crashed")
    assert row["lost"] == 0


SELDOM = ("workload.collect={last: 5, one_of: 11}",)


def test_only_events_that_collect_count_where_few_do(tmp_path):
    marks = marked(tmp_path, (11, True, [b""]))
    got = [*tombstones([(1, 10)]), *client(BATCHES[1:])]
    assert faults_of(check(got, overrides=SELDOM, marks=marks)) == {"lost": 5}  # 11 collects those before 6
    assert faults_of(check(got, overrides=("workload.collect={last: 5}",))) == {}


def test_by_age_nothing_is_old_enough_before_an_event_collects(tmp_path):
    by_age = (
        "workload.collect={older_than: 3s, every: 1s}",
        "workload.rate=6/s",
    )  # acknowledged at 1, 2, 3, 4 s
    marks = marked(tmp_path, (26, True, [b""]))
    got = [*tombstones([(1, 15)], t_s=4.5), *client(BATCHES[2:], t_s=4.6)]
    assert faults_of(check(got, overrides=by_age, marks=marks)) == {}
    early = marked(tmp_path, (11, True, [b""]))
    assert faults_of(check(got, overrides=by_age, marks=early)) == {"lost": 15}


NEW = first_seq_of_epoch(3)  # a later epoch of the stream


def in_epochs(kind, old, new, **more):
    """Batches of epoch 0, and of a later one."""
    content_of_new = {"content": lambda first_seq, count: content(first_seq - NEW + 1, count, of=7)}
    shifted = [(NEW - 1 + first, *rest) for first, *rest in new]
    host = more.pop("host", "r1-client-0")
    return [*records(host, kind, old, **more), *records(host, kind, shifted, **more, **content_of_new)]


def mark(seq=NEW - 1):
    return {**client([(seq, 0)])[0], "kind": int(RecordKind.EPOCH)}


PUBLISHED_IN_EPOCHS = in_epochs(RecordKind.PUBLISHED, BATCHES, BATCHES[:2], host="r0-driver-0")


def test_everything_of_two_epochs_is_fine():
    got = in_epochs(RecordKind.DELIVERED, BATCHES, BATCHES[:2])
    row = check([*got[:4], mark(), *got[4:]], PUBLISHED_IN_EPOCHS)
    assert faults_of(row) == {}
    assert (row["published"], row["delivered"], row["tombstoned"]) == (41, 41, 0)
    assert row["digest"] == row["published_digest"]


def test_the_digest_of_several_epochs_is_that_of_their_sequence_numbers():
    row = check(in_epochs(RecordKind.DELIVERED, BATCHES, BATCHES[:2]), PUBLISHED_IN_EPOCHS)
    seqs = np.array([1, NEW]), np.array([27, NEW + 15])
    assert row["digest"] == digest(seqs)


def test_undelivered_acknowledged_events_of_an_ended_epoch_are_lost():
    got = in_epochs(RecordKind.DELIVERED, BATCHES[:2], BATCHES[:2])
    assert faults_of(check([*got[:2], mark(), *got[2:]], PUBLISHED_IN_EPOCHS)) == {"lost": 11}


def test_the_same_number_in_another_epoch_is_another_event():
    got = in_epochs(RecordKind.DELIVERED, [], BATCHES[:2])
    row = check([*client(BATCHES), mark(), *got], PUBLISHED_IN_EPOCHS)
    assert faults_of(row) == {}
    old_under_new = records(
        "r1-client-0", RecordKind.DELIVERED, [(NEW, 10)], content=lambda first, count: b"?"
    )
    assert faults_of(check([*client(BATCHES), *old_under_new, *got[1:]], PUBLISHED_IN_EPOCHS)) == {
        "corrupted": 10
    }


def test_an_older_epoch_after_a_newer_one_is_out_of_order():
    old, new = (
        in_epochs(RecordKind.DELIVERED, BATCHES, BATCHES[:2])[part] for part in (slice(4), slice(4, 6))
    )
    assert faults_of(check([*new, *old], PUBLISHED_IN_EPOCHS))["out_of_order"] == 26


def test_an_undrained_run_cannot_show_double_publications():
    times = {"zero_ns": ZERO, "stopped_ns": ZERO + 14 * S, "drained_ns": None}
    assert faults_of(check(client([*BATCHES, (27, 4)]), times=times)) == {"unverified": 4}


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
        "count": 10, "t_ns": ZERO + 5, "batch_crc": 0xFFFFFFFF, "running_crc": 7, "covered": 10,
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


def test_a_number_acknowledged_for_two_events_is_reported_as_such():
    """Whatever their boundaries are, and though every number is there."""
    second = records("r0-driver-1", RecordKind.PUBLISHED, [(8, 6)], content=partial(content, of=1))
    published = [*records("r0-driver-0", RecordKind.PUBLISHED, BATCHES), *second]
    assert faults_of(check(client(BATCHES), published)) == {"published_twice": 6}


def test_publications_recorded_twice_are_no_corruption():
    """Neither of the same events, nor of others, whichever of them a client got."""
    published = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES)
    others = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES[1:2], content=partial(content, of=1))
    again = [*published[:2], published[1], *published[2:]]
    assert faults_of(check(client(BATCHES), again)) == {"published_twice": BATCHES[1][1]}
    differing = [*published[:2], *others, *published[2:]]
    assert faults_of(check(client(BATCHES), differing)) == {"published_twice": BATCHES[1][1]}
    of_the_other = [
        *client(BATCHES[:1]),
        *records("r1-client-0", RecordKind.DELIVERED, BATCHES[1:2], content=partial(content, of=1)),
        *client(BATCHES[2:]),
    ]
    assert faults_of(check(of_the_other, differing)) == {"published_twice": BATCHES[1][1]}


def test_bytes_of_none_of_the_events_under_a_number_are_corrupted():
    published = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES)
    garbled = records("r1-client-0", RecordKind.DELIVERED, BATCHES, content=partial(content, of=2))
    found = faults_of(check(garbled, [*published, published[0]]))
    assert found == {"corrupted": sum(count for _, count in BATCHES), "published_twice": BATCHES[0][1]}


def test_two_clients_with_different_bytes_under_a_number_that_no_driver_knows():
    """Check it with a killed driver, which has no record: the correct bytes are unknown."""
    more = (27, 4)
    other = records("r1-client-1", RecordKind.DELIVERED, [*BATCHES, more], content=partial(content, of=1))
    got = [*client([*BATCHES, more]), *other]
    clients = ("r1-client-0", "r1-client-1")
    found = check(got, clients=clients, overrides=KILLED_DRIVER)
    assert faults_of(found) == {"corrupted": 4, "unverified": 4}
    alike = [*client([*BATCHES, more]), *records("r1-client-1", RecordKind.DELIVERED, [*BATCHES, more])]
    assert faults_of(check(alike, clients=clients, overrides=KILLED_DRIVER)) == {"unverified": 4}
