"""Runs of messages become one arrow with the joint range; interruptions end a run."""

import pytest

from analysis.messages import label as label_module
from analysis.pages.diagram.merging import Merging, TypicalDelays, arrows
from analysis.pages.diagram.ranks import HEARTBEAT, Ranks, ranks_of
from analysis.pages.diagram.scene import Arrow
from node.systems import codecs
from tests.analysis.messages.test_toy_messages import CODEC
from tests.analysis.pages.report.report_scenario import ZERO_NS
from tests.analysis.pages.report.synthetic_transfers import BATCH, Row, events, message

RANKS = ranks_of("sprinkler")
EVENTS, ORDINARY = RANKS.events, frozenset(RANKS.ordinary)
A, B = "r0-proxy-0", "r1-proxy-0"


def made(
    rows: list[Row], *, merged: frozenset[str] = frozenset(EVENTS), span_s: float = 8.0, loosely: bool = False
) -> list[Arrow]:
    return arrows(rows, ZERO_NS, span_s, TypicalDelays(rows), Merging(RANKS, merged, loosely=loosely))


def batches(numbers: list[int], **content: object) -> list[Row]:
    return [
        events(0.1 * place, A, B, 2, 1 + number * BATCH, **content) for place, number in enumerate(numbers)
    ]


def labels(rows: list[Row], **how: frozenset[str]) -> list[str]:
    return [arrow.label for arrow in made(rows, **how)]


def test_consecutive_events_are_one_arrow_with_their_joint_range() -> None:
    (arrow,) = made(batches([0, 1, 2, 3]))
    assert arrow.label == "4 \u00d7 EVENTS s2 [1..4000]"
    assert [flight.sent_s for flight in arrow.flights] == pytest.approx([0.0, 0.1, 0.2, 0.3])
    assert arrow.flights[0].complete_s == pytest.approx(0.002)


def test_a_gap_in_the_numbers_is_seen() -> None:
    assert labels(batches([0, 1, 2, 7, 8, 9])) == [
        "3 \u00d7 EVENTS s2 [1..3000]",
        "3 \u00d7 EVENTS s2 [7001..10000]",
    ]


def test_too_many_runs_are_merged_across_gaps() -> None:
    (arrow,) = made(batches([0, 7, 2, 3]), loosely=True)
    assert arrow.label == "4 \u00d7 EVENTS s2 [1..8000]"


def test_a_pause_ends_a_run() -> None:
    rows = batches([0, 1, 2]) + [events(2.0 + 0.1 * n, A, B, 2, 1 + (3 + n) * BATCH) for n in range(3)]
    assert len(made(rows, span_s=8.0)) == 2
    assert len(made(rows, span_s=80.0)) == 1


def test_streams_and_directions_are_not_merged() -> None:
    rows = [events(0.1 * n, A, B, stream, 1 + n * BATCH) for n in range(3) for stream in (0, 1)]
    rows += [events(0.1 * n, B, A, 0, 1 + n * BATCH) for n in range(3)]
    assert len(made(sorted(rows, key=lambda row: row["t_ns"]))) == 3


def test_messages_without_numbers_are_counted() -> None:
    rows = [message(0.1 * n, A, B, "ADVERTISEMENT", advertised=[]) for n in range(5)]
    assert labels(rows, merged=ORDINARY) == [f"5 \u00d7 {HEARTBEAT}"]
    assert len(labels(rows)) == 5


def test_a_lost_message_has_the_slope_of_arrived_ones() -> None:
    rows = [*batches([0], took_s=0.03), *batches([5], took_s=None)]
    assert [arrow.lasting_s for arrow in made(rows)] == pytest.approx([0.03, 0.03])


def test_every_ranked_message_exists_in_its_protocol() -> None:
    known = {name for codec in codecs().values() for name in codec.by_name}
    assert known >= set(RANKS.ordinary) - {HEARTBEAT}


def test_rare_messages_outrank_data_and_data_outranks_gossip() -> None:
    ranks = [RANKS.rank(kind) for kind in ("SUBSCRIBE", "a type of tomorrow", "EVENTS", "NOTIFY", HEARTBEAT)]
    assert ranks[0] == ranks[1]
    assert ranks[1:] == sorted(set(ranks), reverse=True)
    assert not set(RANKS.events) & set(RANKS.leaving_first)


def test_labels_show_host_names_for_addresses(monkeypatch) -> None:
    monkeypatch.setattr(label_module, "codec_of", lambda system: CODEC)
    named = Ranks("toys", (), (), "", {}, {"10.0.2.3": "r2-node-1"})
    row = {"type": "HELLO", "within": "DETOUR", "source": 0x0A000001, "target": 0x0A000203}
    assert named.label(row) == "DETOUR for r2-node-1: HELLO"
    assert Ranks("toys", (), (), "", {}).label(row) == "DETOUR for 10.0.2.3: HELLO"
