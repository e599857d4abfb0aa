"""Selection of drawn messages: all if readable; otherwise the informative ones and the number omitted."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.pages.diagram.message_selection import (
    ARROWS_MAX,
    LIFELINES_MAX,
    DiagramQuery,
    ExtraMessages,
    MessageSelection,
    select_messages,
)
from analysis.pages.diagram.ranks import ranks_of
from analysis.pages.diagram.scene_builder import disturbed_streams
from tests.analysis.pages.report.report_scenario import ZERO_NS
from tests.analysis.pages.report.synthetic_transfers import BATCH, Row, events, message

REGIONS = {f"r{n}-{role}": f"r{n}" for n in range(6) for role in ("proxy-0", "proxy-1", "client-0")}
ALL = DiagramQuery()


def chosen(rows: list[Row], wanted: DiagramQuery = ALL) -> MessageSelection:
    rows = sorted(rows, key=lambda row: row["t_ns"])
    return select_messages(rows, wanted, ZERO_NS, 2.0, REGIONS, ranks_of("sprinkler"))


def drawn(found: MessageSelection) -> int:
    return sum(len(arrow.flights) for arrow in found.arrows)


def counted(found: MessageSelection) -> int:
    """Return the number of omitted messages that the picture reports."""
    return sum(int(re.sub(r"\D", "", text.split("message", maxsplit=1)[0])) for text in found.left_out)


def kinds(found: MessageSelection) -> set[str]:
    return {arrow.type for arrow in found.arrows}


def busy(*, seconds: int = 2) -> list[Row]:
    """Return every region's events to all others and to its own clients, and the clients' messages."""
    rows = []
    for tick in range(seconds * 20):
        at_s = tick * 0.05
        for n in range(4):
            mine = f"r{n}-proxy-0"
            rows += [
                events(at_s, mine, f"r{other}-proxy-0", n, 1 + tick * BATCH)
                for other in range(4)
                if other != n
            ]
            rows.append(events(at_s, mine, f"r{n}-client-0", n, 1 + tick * BATCH))
            rows.append(
                message(at_s, f"r{n}-client-0", mine, "NOTIFY", advertised=[{"stream": n, "cnt": tick}])
            )
            rows.append(message(at_s, mine, f"r{(n + 1) % 4}-proxy-1", "ADVERTISEMENT", advertised=[]))
    return rows


SUBSCRIBE = message(1.0, "r2-proxy-0", "r0-proxy-0", "SUBSCRIBE", stream=3, cnt=7)


def test_few_messages_are_all_drawn() -> None:
    found = chosen(busy()[:20])
    assert drawn(found) == len(found.arrows) == 20
    assert found.left_out == ()


def test_rare_messages_and_those_between_regions_are_kept_longest() -> None:
    found = chosen([*busy(), SUBSCRIBE])
    assert kinds(found) == {"EVENTS", "SUBSCRIBE"}
    assert len(found.arrows) <= ARROWS_MAX
    assert all(REGIONS[arrow.sender] != REGIONS[arrow.receiver] for arrow in found.arrows)
    assert any("within regions" in text for text in found.left_out)
    assert any("heartbeat" in text for text in found.left_out)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 2_000),
            st.sampled_from(sorted(REGIONS)),
            st.sampled_from(sorted(REGIONS)),
            st.sampled_from(["NOTIFY", "EVENTS", "SUBSCRIBE", "ADVERTISEMENT", "HELLO"]),
        ).filter(lambda one: one[1] != one[2]),
        max_size=400,
    )
)
def test_any_selection_is_readable_and_reports_omissions(
    sent: list[tuple[int, str, str, str]],
) -> None:
    rows = [
        events(at_ms / 1000, sender, receiver, 1, 1)
        if name == "EVENTS"
        else message(at_ms / 1000, sender, receiver, name, stream=1 if name == "SUBSCRIBE" else None)
        for at_ms, sender, receiver, name in sent
    ]
    found = chosen(rows)
    assert len(found.arrows) <= ARROWS_MAX
    assert len({end for arrow in found.arrows for end in (arrow.sender, arrow.receiver)}) <= LIFELINES_MAX
    assert drawn(found) + counted(found) == len(rows)
    assert bool(rows) == bool(found.arrows)


def test_one_host_selects_its_messages_and_two_those_between_them() -> None:
    one = chosen(busy(), DiagramQuery(hosts=frozenset({"r1-client-0"})))
    assert {(arrow.sender, arrow.receiver) for arrow in one.arrows} == {
        ("r1-proxy-0", "r1-client-0"),
        ("r1-client-0", "r1-proxy-0"),
    }
    two = chosen(busy(), DiagramQuery(hosts=frozenset({"r1-proxy-0", "r2-proxy-0"})))
    assert {frozenset((arrow.sender, arrow.receiver)) for arrow in two.arrows} == {
        frozenset({"r1-proxy-0", "r2-proxy-0"})
    }


def test_requested_types_are_kept() -> None:
    found = chosen(busy(), DiagramQuery(types=frozenset({"NOTIFY"})))
    assert kinds(found) == {"NOTIFY"}


def test_advertisements_of_one_stream_show_only_its_counter() -> None:
    counters = [{"stream": 0, "cnt": 11}, {"stream": 3, "cnt": 44}]
    rows = [message(0.1, "r0-proxy-0", "r1-proxy-0", "ADVERTISEMENT", advertised=counters)]
    (arrow,) = chosen(rows, DiagramQuery(stream=3)).arrows
    assert arrow.label == "ADVERTISEMENT s3 44"
    assert chosen(rows, DiagramQuery(stream=5)).arrows == []


def test_around_a_fault_only_participating_hosts_are_shown() -> None:
    lost = events(0.9, "r3-proxy-0", "r2-proxy-0", 3, 1, took_s=None)
    told = DiagramQuery(stream=3, beside=ExtraMessages.WHAT_IS_OF_NONE, parts_only=True)
    found = chosen([*busy(), lost, SUBSCRIBE], told)
    hosts = {end for arrow in found.arrows for end in (arrow.sender, arrow.receiver)}
    assert hosts == {"r0-proxy-0", "r2-proxy-0", "r3-proxy-0"}
    assert {"EVENTS", "SUBSCRIBE"} <= kinds(found)


def test_a_process_state_is_shown_from_all_changes() -> None:
    rows = [
        *busy(),
        SUBSCRIBE,
        message(1.1, "r1-client-0", "r1-proxy-1", "CONFIGURATION", configuration=2, members=[1, 2]),
        message(1.2, "r2-proxy-1", "r1-proxy-1", "FOLLOW", advertised=[{"stream": 3, "cnt": 9}]),
    ]
    told = DiagramQuery(stream=1, beside=ExtraMessages.ALL_CHANGES, parts_only=True, victim="r1-proxy-0")
    found = chosen(rows, told)
    assert {"SUBSCRIBE", "CONFIGURATION", "FOLLOW", "EVENTS"} <= kinds(found)
    assert "r1-proxy-0" in {arrow.sender for arrow in found.arrows}
    assert all("s1" in arrow.label for arrow in found.arrows if arrow.type == "EVENTS")
    assert "r3-client-0" not in {end for arrow in found.arrows for end in (arrow.sender, arrow.receiver)}


@pytest.mark.parametrize("column", ["sender", "receiver", "t_sent_ns"])
def test_messages_without_a_known_start_are_counted(column: str) -> None:
    found = chosen([SUBSCRIBE, {**SUBSCRIBE, column: None}])
    assert (drawn(found), counted(found)) == (1, 1)


def test_a_resubscribed_stream_is_more_informative_than_one_that_lost_batches() -> None:
    rows = [
        events(1.0, "r0-proxy-0", "r1-proxy-0", 0, 1),
        *(events(1.0 + n / 100, "r2-proxy-0", "r3-proxy-0", 2, 1, took_s=None) for n in range(5)),
        message(1.2, "r2-proxy-0", "r0-proxy-0", "SUBSCRIBE", stream=3, cnt=5),
    ]
    assert disturbed_streams(rows, ranks_of("sprinkler")) == [3, 2]


def test_streams_without_changes_or_losses_are_not_disturbed() -> None:
    assert disturbed_streams([events(1.0, "r0-proxy-0", "r1-proxy-0", 0, 1)], ranks_of("sprinkler")) == []
