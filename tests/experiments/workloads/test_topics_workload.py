"""Topics: followers and times depend only on the seed; and which systems take which workload."""

from collections import Counter

import pytest
from pydantic import TypeAdapter, ValidationError

from experiments.loader import load_experiment
from experiments.workloads.kinds import AnyWorkload
from experiments.workloads.topics import TopicsWorkload
from tests.refusals import refusal
from topologies.errors import InputError

PLAIN = {"kind": "topics", "event_size": "10B", "rate": "5/s"}
S = 1_000_000


def read(topics=100, **subscriptions):
    given = {**PLAIN, "topics": topics, "subscriptions": subscriptions}
    return TypeAdapter(AnyWorkload).validate_python(given)


def followed(workload, subscribers=500, duration_us=10 * S, seed=1):
    return workload.subscriptions([f"r0/s-{n}" for n in range(subscribers)], duration_us, seed)


def sizes(asked):
    counted = Counter(each.number for mine in asked.values() for each in mine)
    return [counted[topic] for topic in range(100)]


def test_popular_topics_have_more_followers():
    counts = sizes(followed(read(each=2, distribution="zipf", skew=1.0)))
    assert counts[0] > 3 * counts[9] > 0
    assert sum(counts[:10]) > sum(counts[10:])


@pytest.mark.parametrize("count", [90, 100])
def test_a_subscriber_may_follow_nearly_all_topics_even_rare_ones(count):
    asked = followed(read(each=count, distribution="zipf", skew=9.0), subscribers=5)
    assert {len({each.number for each in mine}) for mine in asked.values()} == {count}


def test_members_by_rank_follow_the_scribe_paper():
    """gsize(r) = floor(N r^-1.25 + 0.5), Scribe 2002, section 4."""
    counts = sizes(followed(read(members=500, distribution="zipf", skew=1.25)))
    assert counts == [int(500 * rank**-1.25 + 0.5) for rank in range(1, 101)]
    assert sizes(followed(read(members=11))) == [11] * 100


def test_subscribers_change_topics_and_never_follow_one_twice():
    for mine in followed(read(each=3, change="2s", within="500ms"), subscribers=50).values():
        following = set()
        for each in mine:
            assert each.on != (each.number in following)
            (following.add if each.on else following.remove)(each.number)
            assert len(following) <= 3
        begin_us = mine[0].at_us
        assert 0 <= begin_us <= S // 2
        assert sorted({each.at_us for each in mine}) == list(range(begin_us, 10 * S, 2 * S))


def test_topics_depend_only_on_the_seed_and_the_subscriber():
    workload = read(each=3, change="1s")
    few, many = followed(workload, 10), followed(workload, 20)
    assert few == {name: many[name] for name in few}
    assert few != followed(workload, 10, seed=2)


def test_regions_own_topics_in_turn():
    streams = read(topics=5, each=1).streams_in(["r0", "r1"])
    assert [(each.name, each.region) for each in streams[:3]] == [("t0", "r0"), ("t1", "r1"), ("t2", "r0")]


@pytest.mark.parametrize(
    ("subscriptions", "said"),
    [
        ({"each": 1, "members": 1}, "one of: each"),
        ({"members": 5, "change": "1s"}, "only be together with each"),
        ({"each": 101}, "more than there are topics, 100"),
    ],
)
def test_inconsistent_workloads_are_refused(subscriptions, said):
    with pytest.raises(ValidationError, match=said):
        read(**subscriptions)


def test_a_workload_reads_back_from_its_own_json():
    workload = read(each=2, distribution="zipf", change="1500ms")
    written = workload.model_dump(mode="json", by_alias=True, exclude_none=True)
    assert TopicsWorkload.model_validate(written) == workload


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "workload={kind: topics, event_size: 10B, rate: 5/s, topics: 4, subscriptions: {each: 2}}",
            "workload.kind: sprinkler takes stream, not topics",
        ),
        ("workload=fast", "workload: should be a mapping"),
        ("workload.kind=topic", "workload.kind: there is no such kind of workload: did you mean topics?"),
    ],
)
def test_a_workload_that_a_system_does_not_take_is_refused_in_one_line(setting, said):
    assert said in refusal(load_experiment, "link-failure", [setting])


def several(publishers, tmp_path, roles="{publisher: 1, member: 2}"):
    path = tmp_path / "several.yaml"
    path.write_text(
        f"name: several\ntopology: four-regions\nsystem: scribe\nroles: {roles}\nduration: 5s\n"
        f"workload: {{kind: topics, event_size: 20B, rate: 10/s, topics: 5, publishers: {publishers},"
        " subscriptions: {each: 2}}\n"
    )
    return load_experiment(str(path))


def test_a_topic_has_one_stream_for_each_publisher(tmp_path):
    workload = several(3, tmp_path).workload
    streams = workload.streams_in(["r0", "r1", "r2", "r3"])
    assert [each.region for each in streams[:6]] == ["r0", "r1", "r2", "r1", "r2", "r3"]
    assert [each.name for each in streams[:4]] == ["t0-0", "t0-1", "t0-2", "t1-0"]
    assert len(streams) == 15
    one = several(1, tmp_path).workload
    for mine, topics in zip(followed(workload).values(), followed(one).values(), strict=True):
        assert [each.number for each in mine] == [3 * each.number + at for each in topics for at in range(3)]


def test_a_topic_has_at_most_as_many_publishers_as_there_are_regions(tmp_path):
    assert several(4, tmp_path)
    with pytest.raises(InputError, match="publishers: is more than there are regions, 4"):
        several(5, tmp_path)


def test_a_second_publisher_in_a_region_is_refused(tmp_path):
    with pytest.raises(InputError, match="a region can have one publisher"):
        several(1, tmp_path, roles="{publisher: 2, member: 2}")
