"""Broken readings of the paper, for showing that each one fails where the reading taken does not.

The checklist (Sprinkler, PLP and RLP) names them. They are kept out of the product on purpose.
"""

from dataclasses import dataclass

from node.core.machine import Machine, Randomness
from node.core.specification import NodeSpec
from node.protocols.building import build_machine
from node.protocols.sprinkler.expects import US_PER_S, Expects, Heard, SubscriptionRule, Verdict
from node.protocols.sprinkler.messages import Publication
from node.protocols.sprinkler.parameters import Parameters
from node.protocols.sprinkler.progress import Progress
from node.protocols.sprinkler.proxy import Proxy
from node.protocols.sprinkler.publications import Publications, Publisher
from node.protocols.sprinkler.requests import Requests
from node.protocols.sprinkler.sources import Rule, Source, Sources

DEFAULT = Parameters()


@dataclass(frozen=True)
class Literal:
    """Fig. 1 by the letter: expects changes on switches only."""

    c_events_s: float

    def judge(self, expects: Expects, heard: Heard, rate_per_s: float | None) -> Verdict:
        elapsed_s = max(1, heard.time_us - expects.time_us) / US_PER_S
        if heard.proxy != expects.source and heard.cnt > expects.seq + self.c_events_s / elapsed_s:
            return Verdict.SWITCH
        return Verdict.KEEP


class NeverReturns(SubscriptionRule):
    """Without prefer-direct: the owner is taken like anyone else."""

    def judge(self, expects: Expects, heard: Heard, rate_per_s: float | None) -> Verdict:
        anyone = Heard(heard.proxy, heard.cnt, heard.time_us, owner=heard.owner and expects.source is None)
        return super().judge(expects, anyone, rate_per_s)


class OneC(SubscriptionRule):
    """The same C for all streams, whatever their rate."""

    def lead_events2_s(self, rate_per_s: float) -> float:
        return 2000.0 * (self.period_us / US_PER_S) ** 2


class ForgetsToReset(Sources):
    """expects outlives the channel to its source."""

    def _reset(self, stream: int, source: Source, now_us: int) -> None:
        """Nothing."""

    def _take_from_furthest(self, stream: int, source: Source, why: str, now_us: int) -> None:
        """Nothing."""


class NeverAsksTheProxy(Requests):
    """Without requestFromProxy: what peers do not have is never had."""

    def request_from_proxy(self, progress: Progress) -> None:
        """Nothing."""


class ForgetsRepetitions(Publications):
    """Without (client, request id): what a publisher repeats is published again."""

    def known(self, publisher: Publisher, first_request: int) -> Publication | None:
        return None

    def _is_live(self, publication: Publication) -> bool:
        publisher = (publication.name, publication.incarnation)
        return super().known(publisher, publication.first_request) is publication


def with_rule(rule: Rule):
    """A builder of machines whose proxies follow this rule."""

    def build(spec: NodeSpec, rng: Randomness) -> Machine:
        return Proxy(spec, rng, rule=rule) if spec.role == "proxy" else build_machine(spec, rng)

    return build


def forgetting_to_reset(spec: NodeSpec, rng: Randomness) -> Machine:
    """A builder of machines whose proxies are `ForgetsToReset`."""
    return Proxy(spec, rng, sources=ForgetsToReset) if spec.role == "proxy" else build_machine(spec, rng)


def never_asking_the_proxy(spec: NodeSpec, rng: Randomness) -> Machine:
    """A builder of machines whose clients are `NeverAsksTheProxy`."""
    machine = build_machine(spec, rng)
    if spec.role == "client":
        machine.requests.__class__ = NeverAsksTheProxy
    return machine


def forgetting_repetitions(spec: NodeSpec, rng: Randomness) -> Machine:
    """A builder of machines whose proxies are `ForgetsRepetitions`."""
    machine = build_machine(spec, rng)
    if spec.role == "proxy":
        machine.publications.__class__ = ForgetsRepetitions
    return machine


def taken(kind: type[SubscriptionRule] = SubscriptionRule) -> SubscriptionRule:
    """A rule with the default constants."""
    return kind(DEFAULT.advertisement_period_us, DEFAULT.rate_factor)
