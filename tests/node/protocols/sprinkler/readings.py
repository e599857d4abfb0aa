"""Broken interpretations of the paper, which tests show to fail where the product's interpretation holds.

The checklist (Sprinkler, PLP and RLP) names them. They are deliberately kept out of the product.
"""

from collections.abc import Iterable

from node.core.machine import Machine, Randomness
from node.core.specification import NodeSpec
from node.protocols.sprinkler.messages import Counter, Publication
from node.protocols.sprinkler.printed_rule import US_PER_S, PrintedSources
from node.protocols.sprinkler.proxy import Proxy
from node.protocols.sprinkler.publishing.progress import StreamProgress
from node.protocols.sprinkler.publishing.publications import Publications, Publisher, publisher_of
from node.protocols.sprinkler.region.requests import Requests
from node.protocols.sprinkler.sources import StreamSources
from node.systems import build_machine


class Refreshing(PrintedSources):
    """The prose by the letter: `expects` is refreshed on every advertisement of the source.

    C is r A^2, with r the faster of the stream's rate and ahead / elapsed, so that an overdue source is left.
    The furthest peer is taken when a channel breaks.
    """

    def advertised(self, proxy: str, counters: Iterable[Counter], now_us: int) -> None:
        told = list(counters)
        super().advertised(proxy, told, now_us)
        for counter in told:
            source = self._sources.get(counter.stream)
            if source is not None and source.source == proxy:
                self.expects[counter.stream] = (counter.cnt, now_us)

    def is_ahead(self, ahead: int, elapsed_s: float) -> bool:
        return ahead > 0 and elapsed_s > 1.1 * self._period_us / US_PER_S


class NeverAsksTheProxy(Requests):
    """Without requestFromProxy: events that peers lack are never delivered."""

    def request_from_proxy(self, progress: StreamProgress) -> None:
        """Do nothing."""


class ForgetsRepetitions(Publications):
    """Without (client, request id): a repeated publication is published again."""

    def known(self, publisher: Publisher, first_request: int) -> Publication | None:
        return None

    def _is_live(self, publication: Publication) -> bool:
        return super().known(publisher_of(publication), publication.first_request) is publication


def with_sources(sources: type[StreamSources]):
    """Return a builder of machines whose proxies choose their sources with this class."""

    def build(spec: NodeSpec, rng: Randomness) -> Machine:
        return Proxy(spec, rng, sources=sources) if spec.role == "proxy" else build_machine(spec, rng)

    return build


def never_asking_the_proxy(spec: NodeSpec, rng: Randomness) -> Machine:
    """Build machines whose clients are `NeverAsksTheProxy`."""
    machine = build_machine(spec, rng)
    if spec.role == "client":
        machine.requests.__class__ = NeverAsksTheProxy
    return machine


def forgetting_repetitions(spec: NodeSpec, rng: Randomness) -> Machine:
    """Build machines whose proxies are `ForgetsRepetitions`."""
    machine = build_machine(spec, rng)
    if spec.role == "proxy":
        machine.publications.__class__ = ForgetsRepetitions
    return machine
