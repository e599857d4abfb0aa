"""Golden scenarios of Meghdoot: peers do exactly what the scripts say, as the paper describes."""

from pathlib import Path

from tests.golden import content_scenario
from tests.golden.script import results_of

GOLDEN = Path(content_scenario.__file__).parent / "meghdoot"


def followed(name, *words):
    return results_of(GOLDEN / f"{name}.txt", *words)


def test_an_event_reaches_each_of_five_zones_from_one_parent():
    """Section 3.4; a's zone contains the event's point."""
    ways = [line.split("  ")[0].split(" -> ") for line in followed("unique-parent", " EVENT ")]
    assert sorted(child for _, child in ways) == ["c", "d", "e", "f"]
    back = [line.split("  ")[0].split(" -> ") for line in followed("unique-parent", "  CONFIRM ")]
    assert sorted(back) == sorted([child, parent] for parent, child in ways)
    assert followed("unique-parent", " has b's event") == [f"{name} has b's event 1" for name in "cdb"]


def test_a_subscription_is_confirmed_when_its_copy_is_at_its_mirror_image():
    """Section 4.3; the image of a's second subscription is in a's own zone, so its copy goes to the right."""
    first = followed("mirror", "STORE", "SUBSCRIBED")[:4]
    assert first[-1] == "c -> a  SUBSCRIBED 1 v0"
    assert [line.split("  ")[0] for line in first] == ["a -> c", "c -> b", "b -> c", "c -> a"]
    assert "a -> b  ROUTE STORE_AT for a" in followed("mirror", "STORE_AT")
    assert followed("mirror", "b: 0.5") == [
        "b: 0.5..1 x 0..1; 0 subscriptions, 2 copies",
        "b: 0.5..1 x 0..1; 0 subscriptions, 1 copies",
    ]


def test_a_peer_that_joins_gets_copies_or_a_half():
    """Section 4.1: copies or a half, depending on whether events or subscriptions are more load."""
    assert followed("join-by-load", "COPY") == ["a -> b  COPY a"]
    assert len(followed("join-by-load", "GRANT")) == 1
    kept = followed("join-by-load", "subscriptions")
    assert kept[0:2] == [
        "a: 0..1 x 0..1; 1 subscriptions, 0 copies",
        "b: replica of a; 1 subscriptions, 0 copies",
    ]
    assert [line.partition("; ")[2] for line in kept[2:] if "replica" not in line] == [
        "2 subscriptions, 2 copies"
    ] * 2


def test_a_node_that_takes_over_a_zone_gets_its_subscriptions_from_the_mirror():
    """Section 4.3."""
    assert followed("recovery", "takeover") == ["d: takeover c"]
    assert "b -> d  STORE recovered for b" in followed("recovery", "recovered")
    assert sorted(followed("recovery", "has a's")) == ["a has a's event 1", "b has a's event 1"]


def test_a_subscriber_that_does_not_answer_finally_gets_the_event_from_the_publisher():
    assert followed("no-answer", "UNDELIVERED") == ["a -> b  UNDELIVERED s2 1 c"]
    assert followed("no-answer", " has ") == ["a has b's event 1", "c has b's event 1"]
    assert any(
        line.startswith("b -> c") or "RELAY NOTIFY" in line for line in followed("no-answer", "NOTIFY")
    )
