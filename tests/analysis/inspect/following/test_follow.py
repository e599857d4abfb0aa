"""`cutset follow` on hand-written tables: an event that took a detour around a cut."""

import json
from dataclasses import replace
from ipaddress import IPv4Address

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.inspect.following.copies import find
from analysis.inspect.following.hops import MessagePackets, hops, route_to
from analysis.inspect.following.lines import lines
from analysis.inspect.following.story import explain_path
from analysis.inspect.following.tcp_repair import TcpHistory
from analysis.timelines.run_metadata import read_metadata
from analysis.timelines.schemas import EVENTS
from node.protocols.sprinkler.reading import READING
from testbed.cli.main import run as cutset
from tests.analysis.inspect.following.scenario import REQUEST, SEQ, Scenario, around_the_cut
from tests.analysis.timelines.world import CUT, MS, ZERO, facts_of

KNOWN = facts_of()


@pytest.fixture(scope="module")
def followed(tmp_path_factory):
    return around_the_cut().write(tmp_path_factory.mktemp("runs") / "a-run")


def story_of(run, stream=2, seq=SEQ):
    metadata = read_metadata(run.read_run())
    found = find(run, stream, seq, metadata)
    everything = [copy for copy in (found.publish, *found.repeated, *found.copies) if copy]
    found_hops = hops(found, metadata, MessagePackets(run, everything).sightings_of)
    return explain_path(found, found_hops, metadata, tcp=TcpHistory(run, metadata)), metadata


def hop_of(story, sender, receiver):
    return next(hop for hop in story.hops if (hop.copy.sender, hop.copy.receiver) == (sender, receiver))


EXPECTED = """\
event 105 of stream 2 (region r2)
published     4.995 s  by r2-driver-0 as request 55, in PUBLISH of 51 to 60
numbered      4.998 s  by r2-proxy-0
answered      5.001 s  to r2-driver-0 by r2-proxy-0

  complete  message                           waited   resent    links   queued     rest    total  ms
   4.998 s  r2-driver-0 -> r2-proxy-0              -     0.00     2.00     1.00     0.00     3.00
   5.001 s    r2-proxy-0 -> r2-client-0         1.00     0.00     2.00     0.00     0.00     3.00
   5.037 s    r2-proxy-0 -> r1-proxy-0          1.00     0.00    37.00     0.50     0.00    38.50
   6.045 s      r1-proxy-0 -> r3-proxy-0      963.50     0.00    42.00     3.00     0.00  1008.50
                  requested by SUBSCRIBE, received at 6.000 s
   6.048 s        r3-proxy-0 -> r3-client-1     1.00     0.00     2.00     0.00     0.00     3.00
      lost    r2-proxy-0 -> r3-proxy-0          1.00        -    17.00        -        -        -
                left at 4.999 s and never arrived
                retransmitted at 5.200 s

last: r3-client-1 at 6.048 s, 1053.00 ms after it left r2-driver-0
  path: r2 -> r1 -> r3
  avoids r2-r3: the event was lost there, the link was cut at 5.000 s, with the event in transit
     963.50 ms  wait at r1-proxy-0 until the request of r3-proxy-0 (SUBSCRIBE, received at 6.000 s)
      89.50 ms  other, smaller parts
never seen at r0-client-0, r0-client-1, r1-client-0, r1-client-1, r2-client-1, r3-client-0
"""


@pytest.mark.parametrize("stream", ["2", "r2", "s2"])
def test_the_whole_path_is_reported(followed, capsys, stream):
    assert cutset(["follow", str(followed.path), stream, str(SEQ)]) == 0
    assert capsys.readouterr().out == EXPECTED


def test_packet_lines_have_the_time_since_the_previous_place(followed, capsys):
    assert cutset(["follow", str(followed.path), "2", str(SEQ), "--packets"]) == 0
    shown = [line.split() for line in capsys.readouterr().out.splitlines() if "bytes 0..2999" in line]
    of_detour = [row for row in shown if row[0] in ("6.000000", "6.001000", "6.045000")]
    assert [(row[2], row[5:6]) for row in of_detour] == [
        ("r1-proxy-0", []), ("r1-r3@r1", ["+1.000"]), ("r3-proxy-0", ["+44.000"]),
    ]  # fmt: skip
    resent = [row for row in shown if row[0] == "5.200000"]
    assert [(row[2], row[5:]) for row in resent] == [("r2-proxy-0", [])]


def test_the_parts_of_every_hop_add_up_to_its_time(followed):
    story, _ = story_of(followed)
    arrived = [hop for hop in story.hops if hop.copy.fate == "arrived" and hop.had_ns is not None]
    assert len(arrived) == 4
    for hop in arrived:
        parts = hop.waited_ns + hop.resent_ns + hop.link_ns + hop.queued_ns + hop.completing_ns
        assert parts == hop.total_ns


def test_retransmission_time_does_not_count_as_queueing(tmp_path):
    world = Scenario()
    world.send("EVENTS", "r2-proxy-0", "r3-proxy-0", 0, 220, stream=2, first_seq=1, count=9, covered=9)
    world.packet("r2-proxy-0", ZERO + CUT + 201 * MS)
    story, _ = story_of(world.write(tmp_path / "run"), seq=3)
    (hop,) = story.hops
    assert (hop.resent_ns, hop.queued_ns, hop.link_ns) == (201 * MS, 2 * MS, 17 * MS)
    assert hop.sent_again_ns == (ZERO + CUT + 201 * MS,)


BATCH = {"stream": 2, "first_seq": 101, "count": 10, "covered": 10}


def test_a_wait_names_the_fault_and_the_retransmission_that_ended_it(tmp_path):
    """The batch waits for 100 earlier bytes, which were lost in the cut and which TCP sends three times."""
    world = Scenario()
    world.send("EVENTS", "r1-proxy-0", "r2-proxy-0", 0, 50, **BATCH)
    world.send(
        "EVENTS", "r2-proxy-0", "r3-proxy-0", 4_700, 20, opened_ms=5_700, **BATCH | {"stream_offset": 100}
    )
    for at_ms in (20, 300, 4_600):
        world.packet("r2-proxy-0", ZERO + CUT + at_ms * MS, before=100)
    world.packet("r3-proxy-0", ZERO + CUT + 4_620 * MS, before=100)
    world.send("EVENTS", "r3-proxy-0", "r3-client-0", 4_725, 2, **BATCH)
    story, _ = story_of(world.write(tmp_path / "run"))
    assert [reason.text for reason in story.reasons] == [
        "wait at r2-proxy-0 before sending to r3-proxy-0: try 1 at 5.020 s was lost during cut r2-r3,"
        " try 3 at 9.600 s got through"
    ]


def test_a_retransmission_of_the_message_names_the_fault_that_lost_the_first_try(tmp_path):
    world = Scenario()
    world.send("EVENTS", "r2-proxy-0", "r3-client-0", 3_900, 220, **BATCH)
    world.packet("r2-proxy-0", ZERO + CUT + 4_101 * MS)
    story, _ = story_of(world.write(tmp_path / "run"))
    assert story.reasons[0].text == (
        "r2-proxy-0 -> r3-client-0: retransmission (1 x): try 1 at 8.900 s was lost during cut r2-r3,"
        " try 2 at 9.101 s got through"
    )


def test_a_retransmission_without_a_fault_names_none(tmp_path):
    world = Scenario()
    world.send("EVENTS", "r2-proxy-0", "r3-client-0", -1_000, 220, **BATCH)
    world.packet("r2-proxy-0", ZERO + CUT - 799 * MS)
    story, _ = story_of(world.write(tmp_path / "run"))
    assert story.reasons[0].text == "r2-proxy-0 -> r3-client-0: retransmission (1 x)"


def test_servers_that_never_forwarded_an_event_are_named_with_the_connections_end(tmp_path, capsys):
    world = Scenario()
    world.send("NOTHING", "r2-proxy-0", "r2-client-0", 0, 2)
    world.packet("r2-proxy-0", ZERO + CUT + 90 * MS, flags=1)
    world.packet("r2-client-0", ZERO + CUT + 95 * MS, flags=4)
    world.send("EVENTS", "r1-proxy-0", "r2-proxy-0", 50, 37, **BATCH)
    run = world.write(tmp_path / "run")
    assert cutset(["follow", str(run.path), "2", str(SEQ)]) == 0
    assert capsys.readouterr().out.endswith(
        "last at r2-proxy-0 at 5.087 s, never sent on\n"
        "  its connection to r2-client-0 was ended by FIN of r2-proxy-0 at 5.090 s\n"
    )


def test_a_lost_copy_is_shown_with_the_end_of_its_connection(tmp_path):
    world = Scenario()
    world.send("EVENTS", "r2-proxy-0", "r3-proxy-0", 0, None, **BATCH)
    world.packet("r2-proxy-0", ZERO + CUT + 900 * MS, flags=20)
    story, metadata = story_of(world.write(tmp_path / "run"))
    said = "its connection to r3-proxy-0 was ended by RST of r2-proxy-0 at 5.900 s"
    assert said in [line.strip() for line in lines(story, metadata)]


@pytest.mark.parametrize(
    ("took_ms", "link_ms", "queued_ms"), [(14, 14, 0), (17, 17, 0), (19.5, 19.5, 0), (25, 20, 5)]
)
def test_delay_within_the_jitter_counts_as_link_delay(tmp_path, took_ms, link_ms, queued_ms):
    world = Scenario()
    for link in world.run["plan"]["links"]:
        link["forward"]["jitter_us"] = link["backward"]["jitter_us"] = 1_000  # 3 ms over all three
    world.send("EVENTS", "r2-proxy-0", "r3-proxy-0", -50, took_ms, stream=2, first_seq=1, count=9, covered=9)
    story, _ = story_of(world.write(tmp_path / "run"), seq=3)
    (hop,) = story.hops
    assert (hop.link_ns, hop.queued_ns) == (link_ms * MS, queued_ms * MS)
    assert hop.link_ns + hop.queued_ns == hop.total_ns


def test_an_early_arrival_by_jitter_after_a_second_sending_is_a_retransmission(tmp_path):
    world = Scenario()
    for link in world.run["plan"]["links"]:
        link["forward"]["jitter_us"] = link["backward"]["jitter_us"] = 1_000
    world.send("EVENTS", "r2-proxy-0", "r3-proxy-0", -300, 215, stream=2, first_seq=1, count=9, covered=9)
    world.packet("r2-proxy-0", ZERO + CUT - 100 * MS)
    story, _ = story_of(world.write(tmp_path / "run"), seq=3)
    (hop,) = story.hops
    assert (hop.resent_ns, hop.queued_ns, hop.link_ns) == (200 * MS, 0, 15 * MS)


def test_a_later_copy_is_distinguished_from_the_first(tmp_path):
    world = Scenario()
    batch = {"stream": 2, "first_seq": 1, "count": 9, "covered": 9}
    world.send("EVENTS", "r2-proxy-0", "r2-client-0", 0, 5, **batch)
    world.send("EVENTS", "r2-proxy-0", "r2-client-1", 0, 2, **batch)
    world.send("EVENTS", "r2-client-1", "r2-client-0", 3, 4, **batch)
    story, metadata = story_of(world.write(tmp_path / "run"), seq=9)
    assert [hop.copy.sender for hop in route_to("r2-client-0", story.hops)] == ["r2-proxy-0"]
    again = hop_of(story, "r2-client-1", "r2-client-0")
    assert not again.is_first
    assert any("duplicate: the receiver already had it" in line for line in lines(story, metadata))


def test_events_of_a_restarted_driver_are_matched_to_its_own_publication(tmp_path):
    world = Scenario()
    batch = {"stream": 2, "count": 10}
    driver, head = "r2-driver-0", "r2-proxy-0"
    for start_ms, first_seq in ((0, 1), (500, 101)):
        world.send("PUBLISH", driver, head, start_ms, 2, request=1, **batch)
        world.send("PUBLISHED", head, driver, start_ms + 9, 2, request=1, first_seq=first_seq, **batch)
        world.send("EVENTS", head, "r2-client-0", start_ms + 10, 2, first_seq=first_seq, **batch)
    run = world.write(tmp_path / "run")
    metadata = read_metadata(run.read_run())
    published = [find(run, 2, seq, metadata).publish.sent_ns - ZERO - CUT for seq in (3, 103)]
    assert published == [0, 500 * MS]


def test_events_of_a_driver_with_two_streams_are_matched_by_stream(tmp_path):
    """It numbers its requests per stream, and the other stream was answered last."""
    world = Scenario()
    driver, batch = "r2-driver-0", {"count": 10}
    for stream, head, took_ms in ((2, "r2-proxy-0", 20), (0, "r0-proxy-0", 5)):
        world.send("PUBLISH", driver, head, 0, 2, request=1, stream=stream, **batch)
        world.send(
            "PUBLISHED", head, driver, took_ms, 2, request=1, stream=stream, first_seq=stream + 1, **batch
        )
        world.send("EVENTS", head, "r2-client-0", took_ms, 2, first_seq=stream + 1, stream=stream, **batch)
    run = world.write(tmp_path / "run")
    metadata = read_metadata(run.read_run())
    publishes = [find(run, stream, stream + 1, metadata).publish for stream in (2, 0)]
    assert [publish.receiver for publish in publishes] == ["r2-proxy-0", "r0-proxy-0"]


@pytest.mark.parametrize(
    ("sent_ms", "entered_ms", "why"),
    [
        (-15.5, None, "the link was cut at 5.000 s, with the event in transit"),
        (-16.5, None, "although the link was up"),
        (-16.5, -14.5, "the link was cut at 5.000 s, with the event in transit"),
        (-15.5, -15.2, "although the link was up"),
    ],
)
def test_packets_lost_in_a_cut_are_recognised_by_their_entry_time(tmp_path, sent_ms, entered_ms, why):
    """The event takes 1 ms over the LAN, then 15 ms over the link."""
    world = Scenario()
    batch = {"stream": 2, "first_seq": 101, "count": 10, "covered": 10, "kind": 0}
    world.send("EVENTS", "r2-proxy-0", "r3-proxy-0", sent_ms, None, **batch)
    if entered_ms is not None:
        world.packet("r2-r3@r2", ZERO + CUT + int(entered_ms * MS))
        world.packet("r2-r3@r2", ZERO + CUT + 200 * MS)  # sent again, in vain
    world.send("EVENTS", "r2-proxy-0", "r1-proxy-0", sent_ms, 37, **batch)
    world.send("EVENTS", "r1-proxy-0", "r3-proxy-0", 1_000, 45, **batch)
    world.send("EVENTS", "r3-proxy-0", "r3-client-1", 1_046, 2, **batch)
    story, _ = story_of(world.write(tmp_path / "run"))
    assert story.detour.endswith(why)


def test_json_output_equals_the_text(followed, capsys):
    assert cutset(["follow", str(followed.path), "2", str(SEQ), "--format", "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["request"], told["last"], told["published_s"]) == (REQUEST, "r3-client-1", 4.995)
    lost = [hop for hop in told["hops"] if hop["fate"] == "lost"]
    assert [(hop["from"], hop["to"], hop["sent_again_s"]) for hop in lost] == [
        ("r2-proxy-0", "r3-proxy-0", [5.2])
    ]


@pytest.mark.parametrize(
    ("stream", "seq", "code", "said"),
    [
        ("9", "1", 2, "9: no such stream: known are 0 (r0), 1 (r1), 2 (r2), 3 (r3)"),
        ("3", "1", 1, "no captured message has events of stream 3; streams there: 2"),
        ("2", "99", 1, "no captured message has event 99 of stream 2; it has events 101 to 110"),
    ],
)
def test_missing_events_are_reported_in_one_line(followed, capsys, stream, seq, code, said):
    assert cutset(["follow", str(followed.path), stream, seq]) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert said in captured.err


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    run = around_the_cut().write(tmp_path_factory.mktemp("runs") / "a-run")
    batches = [(-10, 91, 10), (4, 101, 3), (8, 104, 7)]  # ms after the cut, first number, count
    names = {field.name for field in EVENTS}
    rows = [
        {**dict.fromkeys(names), "stream": 2, "kind": "published", "first_seq": first, "count": count}
        | {"host": "r2-proxy-0", "region": "r2", "role": "proxy", "events": count, "run": "a-run"}
        | {"t_ns": ZERO + CUT + ms * MS}
        for ms, first, count in batches
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=EVENTS), run.table("events"))
    return run


@pytest.mark.parametrize(("nth", "seq"), [("+1", 101), ("+3", 103), ("+4", 104), ("+10", 110)])
def test_after_counts_events_from_a_fault(published, capsys, nth, seq):
    assert cutset(["follow", str(published.path), "r2", nth, "--after", "cut"]) == 0
    assert capsys.readouterr().out.startswith(f"event {seq} of stream 2 ")


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (["+11", "--after", "cut"], 1, "10 events of stream 2 were published after cut: no event +11"),
        (["+1", "--after", "cat"], 2, "--after: cat is not a fault of this run: known are cut"),
        (["+1"], 2, "--after FAULT goes with +N"),
        (["105", "--after", "cut"], 2, "--after FAULT goes with +N"),
        (["+0", "--after", "cut"], 2, "+0 is not a sequence number"),
    ],
)
def test_invalid_counts_from_a_fault_are_refused(published, capsys, asked, code, said):
    assert cutset(["follow", str(published.path), "2", *asked]) == code
    assert said in capsys.readouterr().err


def test_an_event_of_a_system_without_requests_is_followed(followed):
    metadata = read_metadata(followed.read_run())
    found = find(followed, 2, SEQ, replace(metadata, reading=replace(READING, asks=())))
    assert found.asked == ()
    assert len(found.copies) == len(find(followed, 2, SEQ, metadata).copies) > 0


def test_paths_through_hosts_with_the_event_or_its_publisher_are_followed(tmp_path):
    """The detour leads through the publisher itself, and through a proxy that published the event."""
    world, batch = Scenario(), {"stream": 2, "first_seq": 101, "count": 10}
    driver, head, other = "r2-driver-0", "r2-proxy-0", "r1-proxy-0"
    world.send("PUBLISH", driver, head, 0, 2, stream=2, request=1, count=10)
    world.send("PUBLISHED", head, driver, 3, 2, request=1, **batch)
    world.send("EVENTS", head, other, 4, 37, **batch)
    for place, target, at_ms in ((other, "r3-proxy-0", 50), (driver, "r0-proxy-0", 60)):
        ends = {"source": number(head), "target": number(target)}
        world.send("EVENTS", head, place, at_ms, 5, **batch, **ends)
        world.send("EVENTS", place, target, at_ms + 10, 5, **batch, **ends)
    story, metadata = story_of(world.write(tmp_path / "run"))
    ways = {
        host: [(hop.copy.sender, hop.copy.receiver) for hop in route_to(host, story.hops)]
        for host in ("r3-proxy-0", "r0-proxy-0")
    }
    assert ways == {
        "r3-proxy-0": [(driver, head), (head, other), (other, "r3-proxy-0")],
        "r0-proxy-0": [(driver, head), (head, driver), (driver, "r0-proxy-0")],
    }
    text = "\n".join(lines(story, metadata))
    assert text.count("to be relayed to") == 2
    assert "duplicate" not in text


def number(host):
    return int(IPv4Address(KNOWN.hosts[host].address))
