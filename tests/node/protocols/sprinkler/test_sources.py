"""Sources of streams with inputs by hand: advertisements over time, and requests between two epochs."""

import random
from functools import partial
from types import SimpleNamespace

import pytest

from node.core.epochs import first_seq_of_epoch
from node.protocols.sprinkler.messages import Counter, EventKind, Events
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.sources import StreamSources
from node.protocols.sprinkler.storage.batches import epoch_mark
from node.protocols.sprinkler.storage.history import EventHistory

ME, OWNER, NEAR = 0, 1, 2
STREAM = 1
PERIOD_US = 1_000_000
BOTH = (NEAR, OWNER)


class Bench:
    """The sources of one stream, and their requests."""

    def __init__(self, others=2):
        self.parameters = SprinklerParameters(
            advertisement_period_us=PERIOD_US, restore_wait_us=3 * PERIOD_US
        )
        self.others = others
        self.history = EventHistory([STREAM], 1 << 30)
        self.asked = []
        self.sources = StreamSources(self.history, ME, PERIOD_US, self)
        self.sources.add(STREAM)

    def subscribe(self, proxy, stream, cnt):
        self.asked.append((proxy, cnt))

    def unsubscribe(self, proxy, stream):
        self.asked.append((proxy, None))

    def source_switched(self, switch):
        self.source = switch.after

    def has(self, cnt):
        """Set the number of received events."""
        self.history.streams[STREAM] = SimpleNamespace(cnt=cnt, used_bytes=0)

    def says(self, proxy, at_ms, *cnts, path=None):
        if path is not None:
            self.sources.told_paths(proxy, {STREAM: path})
        self.sources.advertised(proxy, [Counter(STREAM, cnt) for cnt in cnts], at_ms * 1000)


@pytest.fixture
def bench():
    bench = Bench()
    bench.says("slow", 0, 95, path=(NEAR, OWNER))
    bench.has(95)
    assert bench.source == "slow"
    return bench


def test_counters_sent_on_connecting_do_not_count_as_an_advertisement_old(bench):
    bench.says("other", 500, 100, path=(NEAR, OWNER))
    bench.says("other", 510, 105)
    assert bench.source == "slow", "its way is slower, but by less than a period"


def test_a_source_that_still_lags_a_period_later_is_left(bench):
    bench.says("other", 500, 100, path=(NEAR, OWNER))
    bench.says("other", 510, 105)
    bench.says("other", 1510, 205)
    assert bench.source == "other"


def test_a_lagging_source_is_left_though_advertisements_arrive_early(bench):
    bench.says("other", 510, 100, path=(NEAR, OWNER))
    bench.says("other", 1480, 205)
    assert bench.source == "other"


@pytest.fixture
def traversal():
    """Let the owner's next epoch wait; `third` is already in it and has ten more events of the old one."""
    bench = Bench()
    bench.says("owner", 0, first_seq_of_epoch(1), path=(OWNER,))
    bench.has(95)
    return bench


def test_a_held_source_is_resumed_when_its_epoch_is_accepted(traversal):
    """Expect the mark once more, although it is not requested: it was in flight."""
    assert not traversal.sources.may_cross(STREAM, 1_000)
    assert traversal.asked[-1] == ("owner", None)
    assert traversal.sources.may_cross(STREAM, 3_002_000)
    assert traversal.asked[-1] == ("owner", 95)


def test_a_stream_stopped_for_lack_of_room_is_taken_again_with_room(bench):
    bench.history.limit_bytes = 1_000
    bench.sources.stop(STREAM, Events(EventKind.DATA, 0, STREAM, 96, 1, 1_000, 0, 0, bytes(1_000)))
    bench.says("slow", 1_000, 105)
    assert bench.asked[-1] == ("slow", None)
    bench.history.limit_bytes = 2_000
    bench.says("slow", 2_000, 105)
    assert bench.asked[-1] == ("slow", 95)


def test_an_epoch_transition_waits_no_longer_than_a_recovery(traversal):
    assert not traversal.sources.may_cross(STREAM, 1_000)
    traversal.says("owner", 1100, first_seq_of_epoch(1))
    assert traversal.asked[-1] == ("owner", 95), "it is asked again once in a period"
    assert not traversal.sources.may_cross(STREAM, 1_110_000)
    assert traversal.sources.may_cross(STREAM, 3_001_000)


def test_an_epoch_transition_stops_waiting_for_advertised_but_unsent_events(traversal):
    traversal.says("third", 0, 105, first_seq_of_epoch(1), path=(NEAR, OWNER))
    assert not traversal.sources.may_cross(STREAM, 1_000)
    traversal.has(100)
    assert not traversal.sources.may_cross(STREAM, 2_000_000)
    assert traversal.sources.may_cross(STREAM, 5_000_000)


def test_a_proxy_remembers_where_it_left_former_epochs():
    stream = EventHistory([STREAM], 1 << 30).streams[STREAM]
    stream.append(epoch_mark(STREAM, 1, 1))
    assert stream.ends == (), "there was nothing before"
    stream.append(epoch_mark(STREAM, first_seq_of_epoch(1), 2))
    stream.append(epoch_mark(STREAM, first_seq_of_epoch(2), 3))
    assert stream.ends == (first_seq_of_epoch(1) - 1, first_seq_of_epoch(2) - 1)
    stream.truncate(first_seq_of_epoch(2) - 1)
    assert stream.ends == (first_seq_of_epoch(1) - 1,)


class EverythingCompared(StreamSources):
    """Applies the rule to all offers at each advertisement."""

    def _is_settled(self, *_):
        return False


@pytest.mark.parametrize("seed", range(10))
def test_comparing_only_what_was_advertised_changes_no_decision(seed):
    draw = random.Random(seed)
    benches = [Bench(), Bench()]
    benches[1].sources = EverythingCompared(benches[1].history, ME, PERIOD_US, benches[1])
    benches[1].sources.add(STREAM)
    cnts, own = dict.fromkeys("abcde", 0), 0
    for step in range(300):
        proxy, what = draw.choice("abcde"), draw.random()
        if what < 0.05:
            act = partial(StreamSources.lost, proxy=proxy, why="lost", now_us=step * 300_000)
        elif what < 0.2:
            path = draw.choice([(), (OWNER,), (NEAR, OWNER), (NEAR, 3, OWNER), (NEAR, ME, OWNER)])
            act = partial(StreamSources.told_paths, proxy=proxy, paths={STREAM: path})
        else:
            cnts[proxy] = max(0, cnts[proxy] + draw.choice([0, 1, 30, 30, -90]))
            own = draw.randint(own if draw.random() < 0.9 else 0, max(own, *cnts.values()))
            counters = [Counter(STREAM, cnts[proxy])]
            act = partial(StreamSources.advertised, proxy=proxy, counters=counters, now_us=step * 300_000)
        for bench in benches:
            bench.has(own)
            act(bench.sources)
        assert benches[0].asked == benches[1].asked, f"step {step}"
    assert len(benches[0].asked) > 5
