"""Each kind of wrong delivery is detected on hand-written histories, and correct ones pass."""

from functools import partial
from zlib import crc32

import numpy as np
import pyarrow as pa
import pytest

from analysis.errors import AnalysisError
from analysis.timelines import schemas
from analysis.timelines.delivery.collecting import read_marks
from analysis.timelines.delivery.deliveries import delivery_table as check_clients
from analysis.timelines.delivery.delivery_records import read_files
from analysis.timelines.delivery.sequence_intervals import digest
from node.core.collection_marks import encode_mark, keys_of
from node.core.deliveries import DeliveryRecord, RecordKind, encode_file_header, encode_record
from node.core.epochs import first_seq_of_epoch
from tests.analysis.timelines.world import ZERO, S, facts_of

BATCHES = [(1, 10), (11, 5), (16, 10), (26, 1)]  # first sequence number, count
COUNTS = (
    "lost", "stray", "duplicated", "out_of_order", "resurrected", "corrupted", "unverified",
    "published_twice",
)  # fmt: skip


def content(first_seq, count, of=0):
    return b"".join(b"%02d%08d" % (of, seq) for seq in range(first_seq, first_seq + count))


def same_at(first_seq, as_of):
    """Return contents in which the batch at a number has the bytes of another one."""
    return lambda first, count: content(as_of if first == first_seq else first, count)


def records(host, kind, batches, *, session=0, content=content, running=None, t_s=1.0, stream=0):
    """Return rows in order; `running` starts from that CRC instead of 0. A batch may have a reach."""
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


def tables(*rows):
    return [pa.Table.from_pylist(each, schema=schemas.RECORDS) for each in rows]


def check(got, published=None, overrides=(), clients=("r1-client-0",), marks=None, **metadata):
    """Return the row of stream 0 for one client with these batches."""
    published = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES) if published is None else published
    about = facts_of(*overrides, "expect=[]", **metadata)
    rows = check_clients(clients, *tables(published, got), about, marks).to_pylist()
    return next(row for row in rows if row["client"] == clients[0] and row["stream"] == 0)


def wrong(*arguments, **named):
    """Return the non-zero error counts."""
    row = check(*arguments, **named)
    return {name: row[name] for name in COUNTS if row[name]}


def client(batches, **more):
    return records("r1-client-0", more.pop("kind", RecordKind.DELIVERED), batches, **more)


def tombstones(batches, **more):
    return client(batches, kind=RecordKind.TOMBSTONE, **more)


def sparse(batches):
    return client(batches, kind=RecordKind.SPARSE)


def bent(first_seq, count):
    return content(first_seq, count)[:-1] + b"!" if first_seq == 16 else content(first_seq, count)


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        pytest.param(client(BATCHES), {}, id="everything once in order"),
        pytest.param(client([*BATCHES[:1], *BATCHES[2:]]), {"lost": 5}, id="missing is lost"),
        pytest.param([], {"lost": 26}, id="nothing at all is lost"),
        pytest.param(client([*BATCHES, BATCHES[1]]), {"duplicated": 5}, id="again is duplicated"),
        pytest.param(
            client([BATCHES[0], BATCHES[2], BATCHES[1], BATCHES[3]]), {"out_of_order": 5},
            id="late is out of order",
        ),
        pytest.param(
            client([(1, 10), (6, 10), (16, 10), (26, 1)]), {"duplicated": 5, "unverified": 10},
            id="one that reaches back is partly duplicated",
        ),
        pytest.param(client(BATCHES, content=bent), {"corrupted": 10}, id="other bytes are corrupted"),
        pytest.param(
            client([*BATCHES, (27, 4)]), {"duplicated": 4}, id="a number that no driver has is duplicated"
        ),
        pytest.param(
            client([(1, 15), (16, 10), (26, 1)]), {"unverified": 15},
            id="other batches than published cannot be verified",
        ),
        pytest.param(
            [*client(BATCHES), *client(BATCHES, session=1)], {}, id="a new session may get everything again"
        ),
        pytest.param(
            [*client(BATCHES[:2]), *client(BATCHES[2:], session=1)], {"lost": 15},
            id="a new session has to get everything again",
        ),
        pytest.param(
            [*tombstones([(1, 10)]), *client(BATCHES[1:])], {"lost": 10},
            id="without a rule nothing may be collected",
        ),
    ],
)  # fmt: skip
def test_each_kind_of_wrong_delivery_is_counted(got, expected):
    assert wrong(got) == expected


def test_delivered_but_unrecorded_bytes_show_in_the_running_crc():
    rows = client(BATCHES[:2]) + client(BATCHES[2:], running=1234)
    for number, row in enumerate(rows):
        row["position"] = number
    assert wrong(rows) == {"corrupted": 10}


def faults(*each):
    return (f"faults=[{', '.join(each)}]",)


KILLED_DRIVER = faults("{name: dead, at: 7s, kill: r0/driver-0}")
UNIFORM_KEYS = 'workload.keys={"distribution": "uniform"}'
UNDRAINED = {"zero_ns": ZERO, "stopped_ns": ZERO + 14 * S, "drained_ns": None}


@pytest.mark.parametrize(
    ("about", "more", "data", "expected"),
    [
        ({"outcome": "crashed"}, [(27, 4)], content, {"unverified": 4}),
        ({"times": UNDRAINED}, [(27, 4)], content, {"unverified": 4}),
        ({"overrides": KILLED_DRIVER}, [(27, 4)], content, {"unverified": 4}),
        (
            {"overrides": KILLED_DRIVER}, [(27, 4), (31, 4)], same_at(31, 27),
            {"unverified": 4, "duplicated": 4},
        ),
        ({"overrides": KILLED_DRIVER}, [(27, 10)], same_at(27, 16), {"duplicated": 10}),
        ({"overrides": (*KILLED_DRIVER, UNIFORM_KEYS)}, [(27, 10)], same_at(27, 16), {"unverified": 10}),
    ],
    ids=[
        "after a crash", "undrained", "of a killed driver", "of a killed driver only once",
        "an acknowledged one again was published twice", "events with keys may be equal",
    ],
)  # fmt: skip
def test_unacknowledged_publications_may_be_delivered(about, more, data, expected):
    assert wrong(client([*BATCHES, *more], content=data), **about) == expected


RESTARTED = faults("{name: dead, at: 7s, kill: r1/client-0}", "{name: back, at: 8s, restart: r1/client-0}")


def test_a_restarted_client_needs_everything_and_its_first_session_no_gaps():
    assert wrong(client(BATCHES), overrides=RESTARTED) == {"lost": 26}
    early = client([BATCHES[0], BATCHES[2]])
    assert wrong([*early, *client(BATCHES, session=1)], overrides=RESTARTED) == {"lost": 5}


@pytest.mark.parametrize("ended", ["kill", "leave"])
def test_a_departed_client_must_have_everything_until_then(ended):
    gone = faults(f"{{name: gone, at: 7s, {ended}: r1/client-0}}")
    assert wrong(client(BATCHES[:2]), overrides=gone) == {}
    assert wrong(client([BATCHES[0], BATCHES[2]]), overrides=gone) == {"lost": 5}
    assert wrong([], overrides=gone) == {}


def test_a_late_joiner_gets_everything_or_its_tombstone():
    late = (*faults("{name: late, at: 7s, join: r1/client-0}"), "workload.collect={last: 11}")
    assert wrong(client(BATCHES), overrides=late) == {}
    got = [*tombstones([(1, 14)]), *client([(15, 1), *BATCHES[2:]])]
    assert wrong(got, overrides=late) == {"unverified": 1}
    assert wrong(client(BATCHES[2:]), overrides=late) == {"lost": 15}


def test_clients_and_streams_are_checked_separately():
    mine, others = client(BATCHES), records("r2-client-1", RecordKind.DELIVERED, BATCHES[1:])
    published = [
        *records("r0-driver-0", RecordKind.PUBLISHED, BATCHES),
        *records("r3-driver-0", RecordKind.PUBLISHED, [(1, 5), (6, 7)], stream=3),
    ]
    got = [*mine, *client([(1, 5)], stream=3), *others]
    rows = check_clients(("r1-client-0", "r2-client-1"), *tables(published, got), facts_of()).to_pylist()
    assert [(row["client"], row["stream"], row["delivered"], row["lost"]) for row in rows] == [
        ("r1-client-0", 0, 26, 0), ("r1-client-0", 1, 0, 0), ("r1-client-0", 2, 0, 0),
        ("r1-client-0", 3, 5, 7), ("r2-client-1", 0, 16, 10), ("r2-client-1", 1, 0, 0),
        ("r2-client-1", 2, 0, 0), ("r2-client-1", 3, 0, 12),
    ]  # fmt: skip


# --- Collection

LAST_11 = ("workload.collect={last: 11}",)
KEYED = ("workload.collect={same_key: 8}",)


def by_age(rate=6, every=""):
    """Return a collection by age; events are acknowledged at 1, 2, 3 and 4 s."""
    return (f"workload.collect={{older_than: 3s{every}}}", f"workload.rate={rate}/s")


def collected_at(t_s):
    """Return a history in which the first two batches were collected at a time."""
    return [*tombstones([(1, 15)], t_s=t_s), *client(BATCHES[2:], t_s=t_s + 0.1)]


def test_a_tombstone_accounts_for_its_events():
    row = check([*tombstones([(1, 10)]), *client(BATCHES[1:])], overrides=LAST_11)
    assert (row["delivered"], row["tombstoned"], row["covered"], row["lost"]) == (16, 10, 26, 0)
    assert row["digest"] == row["published_digest"]
    late = check([*client(BATCHES[:2]), *tombstones([(1, 14)]), *client(BATCHES[2:])], overrides=LAST_11)
    assert (late["delivered"], late["tombstoned"], late["lost"]) == (26, 0, 0)


def test_a_batch_with_tombstones_counts_both_and_is_unverified():
    row = check([*sparse([(1, 4, 10)]), *client(BATCHES[1:])], overrides=KEYED)
    assert (row["delivered"], row["tombstoned"], row["unverified"]) == (20, 6, 4)


@pytest.mark.parametrize(
    ("rule", "got", "expected"),
    [
        (LAST_11, [*client(BATCHES[:1]), *tombstones([(11, 5)]), *client(BATCHES[2:])], {"lost": 1}),
        (LAST_11, [*tombstones([(1, 10)]), *client(BATCHES)], {"resurrected": 10}),
        (LAST_11, [*tombstones([(1, 10)]), *client(BATCHES[1:]), *client(BATCHES, session=1)], {}),
        (by_age(), collected_at(4.5), {}),  # 4.5 s less 3 s, and a second of slack
        (by_age(), collected_at(3.5), {"lost": 5}),
        (KEYED, [*client(BATCHES[:3]), *tombstones([(26, 1)])], {"lost": 1}),
    ],
    ids=[
        "15 = 26 - 11 is among the last", "an event after its tombstone is resurrected",
        "another session may see it", "old enough", "not old enough", "the last of all keys stays",
    ],
)  # fmt: skip
def test_only_events_matched_by_the_rule_may_be_collected(rule, got, expected):
    assert wrong(got, overrides=rule) == expected


def test_by_age_an_event_counts_from_its_first_delivery():
    """Its publisher may be acknowledged late: in another region, behind a cut."""
    other = records("r0-client-0", RecordKind.DELIVERED, BATCHES, t_s=0.1)
    clients = ("r1-client-0", "r0-client-0")
    assert wrong([*collected_at(3.5), *other], overrides=by_age(), clients=clients) == {}


def test_by_age_an_event_counts_from_its_head():
    """A stalled chain acknowledges and delivers it late everywhere."""
    published = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES, t_s=3)
    got = collected_at(4.5)
    assert wrong(got, published, overrides=by_age(5)) == {}  # the eleventh was due after 2.2 s
    assert wrong(got, published, overrides=by_age(4)) == {"lost": 5}  # after 2.75 s


def marked(tmp_path, *marks):
    """Write marks as a driver does: first number, whether its events collect, their keys."""
    path = tmp_path / "r0-driver-0.collection"
    data = [
        encode_mark(0, first, len(keys), collects=collects, keys=keys_of(keys, 2))
        for first, collects, keys in marks
    ]
    path.write_bytes(b"".join(data) + b"torn")
    return read_marks([path, tmp_path / "of another driver, who left none"])


ONE_B = [b"aa"] * 12 + [b"bb"] * 2 + [b"aa"] * 12  # 14 is the last one with bb
ALL_DIFFER = [b"%02d" % number for number in range(26)]
SELDOM = ("workload.collect={last: 5, one_of: 11}",)
TWO_GONE, ONE_GONE = collected_at(4.5), [*tombstones([(1, 10)]), *client(BATCHES[1:])]


@pytest.mark.parametrize(
    ("rule", "marks", "got", "expected"),
    [
        (KEYED, [(1, True, [b"aa"] * 10), (11, True, [b"aa"] * 16)], TWO_GONE, {}),
        (KEYED, [(1, True, ONE_B)], TWO_GONE, {"lost": 1}),
        (KEYED, [(1, True, ONE_B)], [*sparse([(1, 2, 15)]), *client(BATCHES[2:])], {"unverified": 2}),
        (
            KEYED, [(1, True, ONE_B)],
            [*tombstones([(1, 10)]), *sparse([(11, 1, 5)]), *client(BATCHES[2:])], {"unverified": 1},
        ),
        (KEYED, [(1, False, [b"aa"] * 20), (21, True, [b"bb"] * 6)], TWO_GONE, {"lost": 15}),
        (KEYED, [(1, True, ALL_DIFFER)], TWO_GONE, {"lost": 15}),
        (SELDOM, [(11, True, [b""])], ONE_GONE, {"lost": 5}),
        (("workload.collect={last: 5}",), [(11, True, [b""])], ONE_GONE, {}),
        (by_age(every=", every: 1s"), [(26, True, [b""])], TWO_GONE, {}),
        (by_age(every=", every: 1s"), [(11, True, [b""])], TWO_GONE, {"lost": 15}),
    ],
    ids=[
        "an event with a later one of its key may go", "the last with its key may not",
        "a batch that lacks some may hold the last", "a batch with tombstones may hold it",
        "an event that collects nothing leaves what is before it", "keys that differ collect nothing",
        "11 collects those before 6", "each event collects",
        "old enough when one collects", "too young when one collects",
    ],
)  # fmt: skip
def test_marks_list_the_collecting_events(tmp_path, rule, marks, got, expected):
    assert wrong(got, overrides=rule, marks=marked(tmp_path, *marks)) == expected


def test_by_key_unmarked_events_of_a_killed_driver_may_have_collected(tmp_path):
    got = [*TWO_GONE, *client([(27, 1)])]
    row = check(got, overrides=KEYED, marks=marked(tmp_path, (1, True, ALL_DIFFER)), outcome="crashed")
    assert row["lost"] == 0


# --- Epochs

NEW = first_seq_of_epoch(3)  # a later epoch of the stream


def in_epochs(kind, old, new, host="r1-client-0"):
    """Batches of epoch 0, and of a later one."""
    shifted = [(NEW - 1 + first, *rest) for first, *rest in new]
    content_of_new = lambda first_seq, count: content(first_seq - NEW + 1, count, of=7)  # noqa: E731
    return [*records(host, kind, old), *records(host, kind, shifted, content=content_of_new)]


MARK = {**client([(NEW - 1, 0)])[0], "kind": int(RecordKind.EPOCH)}
IN_EPOCHS = in_epochs(RecordKind.PUBLISHED, BATCHES, BATCHES[:2], host="r0-driver-0")
GOT = in_epochs(RecordKind.DELIVERED, BATCHES, BATCHES[:2])
OLD_UNDER_NEW = client([(NEW, 10)], content=lambda first, count: b"?")


def test_complete_deliveries_of_two_epochs_have_no_errors():
    row = check([*GOT[:4], MARK, *GOT[4:]], IN_EPOCHS)
    assert (row["published"], row["delivered"], row["tombstoned"], row["lost"]) == (41, 41, 0, 0)
    assert row["digest"] == row["published_digest"]
    assert row["digest"] == digest((np.array([1, NEW]), np.array([27, NEW + 15])))


@pytest.mark.parametrize(
    ("got", "expected"),
    [
        ([*GOT[:2], MARK, *GOT[4:]], {"lost": 11}),
        ([*client(BATCHES), *OLD_UNDER_NEW, *GOT[5:]], {"corrupted": 10}),
        ([*GOT[4:], *GOT[:4]], {"out_of_order": 26}),
    ],
    ids=["undelivered of an ended epoch", "bytes of another epoch's number", "an older one after a newer"],
)
def test_events_of_the_wrong_epoch_are_found(got, expected):
    assert expected.items() <= wrong(got, IN_EPOCHS).items()


def test_disorder_counts_for_the_fault_before_it():
    row = check(client([*BATCHES, BATCHES[1], BATCHES[0]], t_s=2.5))  # at 6.5 and 7.5 s; faults at 5 and 9 s
    assert row["duplicated_after"] == [15, 0]
    assert row["out_of_order_after"] == [0, 0]


def test_only_deliveries_while_drivers_ran_count_for_throughput():
    row = check(client(BATCHES, t_s=12.5))  # 12.5, 13.5, 14.5, 15.5 s; the drivers stop at 14 s
    assert (row["delivered_while_running"], row["delivered"]) == (15, 26)


# --- Files


def test_files_are_read_up_to_a_torn_record(tmp_path):
    path = tmp_path / "r1-client-0.deliveries"
    session = DeliveryRecord(0, 0, 0, ZERO, 0, 0, RecordKind.SESSION, 0)
    first = DeliveryRecord(3, 10, 1, ZERO + 5, 0xFFFFFFFF, 7, RecordKind.DELIVERED, 10)
    whole = [encode_record(record) for record in (session, first, session, first)]
    path.write_bytes(encode_file_header() + b"".join(whole) + whole[1][:-1])
    rows = read_files([("r1-client-0", path)]).to_pylist()
    assert [(row["session"], row["kind"]) for row in rows] == [(0, 2), (0, 0), (1, 2), (1, 0)]
    assert rows[1] == {
        "host": "r1-client-0", "session": 0, "position": 1, "kind": 0, "stream": 3, "first_seq": 1,
        "count": 10, "t_ns": ZERO + 5, "batch_crc": 0xFFFFFFFF, "running_crc": 7, "covered": 10,
    }  # fmt: skip
    for size in (0, 7, 16):
        path.write_bytes(encode_file_header()[:size])
        assert read_files([("x", path)]).num_rows == 0
    path.write_bytes(b"no such thing at all")
    with pytest.raises(AnalysisError, match=r"r1-client-0\.deliveries"):
        read_files([("x", path)])


# --- Several publications under a number

OF_DRIVER = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES)
OTHERS = records("r0-driver-0", RecordKind.PUBLISHED, BATCHES[1:2], content=partial(content, of=1))
SECOND = records("r0-driver-1", RecordKind.PUBLISHED, [(8, 6)], content=partial(content, of=1))
OF_THE_OTHER = [
    *client(BATCHES[:1]), *client(BATCHES[1:2], content=partial(content, of=1)), *client(BATCHES[2:]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("published", "got", "expected"),
    [
        ([*OF_DRIVER, *SECOND], client(BATCHES), {"published_twice": 6}),
        ([*OF_DRIVER[:2], OF_DRIVER[1], *OF_DRIVER[2:]], client(BATCHES), {"published_twice": 5}),
        ([*OF_DRIVER[:2], *OTHERS, *OF_DRIVER[2:]], client(BATCHES), {"published_twice": 5}),
        ([*OF_DRIVER[:2], *OTHERS, *OF_DRIVER[2:]], OF_THE_OTHER, {"published_twice": 5}),
        (
            [*OF_DRIVER, OF_DRIVER[0]], client(BATCHES, content=partial(content, of=2)),
            {"corrupted": 26, "published_twice": 10},
        ),
    ],
    ids=[
        "by two drivers, whatever their boundaries", "recorded twice", "other events, the first came",
        "other events, the second came", "none of them came",
    ],
)  # fmt: skip
def test_numbers_with_several_publications_are_reported(published, got, expected):
    assert wrong(got, published) == expected


def test_two_clients_with_different_bytes_under_a_number_that_no_driver_knows():
    """A killed driver has no record, so the correct bytes are unknown."""
    batches, clients = [*BATCHES, (27, 4)], ("r1-client-0", "r1-client-1")
    for of, expected in ((1, {"corrupted": 4, "unverified": 4}), (0, {"unverified": 4})):
        data = lambda first, count, of=of: content(first, count, of if first == 27 else 0)  # noqa: E731
        got = [*client(batches), *records("r1-client-1", RecordKind.DELIVERED, batches, content=data)]
        assert wrong(got, clients=clients, overrides=KILLED_DRIVER) == expected
