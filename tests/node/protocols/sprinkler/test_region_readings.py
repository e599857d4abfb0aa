"""Figure 3 by the letter never delivers an event (checklist, Sprinkler, RLP)."""

from node.protocols.sprinkler.chain.answers import Answers
from node.protocols.sprinkler.messages import EventKind
from node.protocols.sprinkler.region.client import Client
from node.systems import build_machine
from tests.node.cluster import COARSE, Cluster, S


class Literal(Client):
    """cnt = -1 and next = 0, although the first event's number is 1."""

    def __init__(self, spec, rng):
        super().__init__(spec, rng)
        for progress in self.requests.streams.values():
            progress.cnt, progress.next = -1, 0


def literal_counters(spec, rng):
    return Literal(spec, rng) if spec.role == "client" else build_machine(spec, rng)


class Exclusive:
    """A store seen through the interval (seq - range, seq), which is empty for an event of range 1."""

    def __init__(self, store):
        self._store = store
        self.cnt = store.cnt

    def after(self, stream, cnt, limit_bytes):
        found = self._store.after(stream, cnt, limit_bytes)
        return [each for each in found if each.kind == EventKind.TOMBSTONE and each.count > 1]


def exclusive_intervals(spec, rng):
    machine = build_machine(spec, rng)
    if spec.role in {"client", "proxy"}:
        part = machine.tail if spec.role == "proxy" else machine
        answers = part.dissemination._answers
        assert type(answers) is Answers
        answers._store = Exclusive(answers._store)
    return machine


def after_a_while(build):
    cluster = Cluster(build=build, regions=1, clients=10, parameters=COARSE)
    cluster.run(4 * S)
    cluster.drain(5 * S)
    assert cluster.published()[0] > 1000
    return cluster


def test_the_literal_rule_delivers_nothing():
    assert all(got[0] < 1 for got in after_a_while(literal_counters).delivered().values())


def test_an_interval_that_excludes_its_end_delivers_nothing():
    assert all(got[0] < 1 for got in after_a_while(exclusive_intervals).delivered().values())
