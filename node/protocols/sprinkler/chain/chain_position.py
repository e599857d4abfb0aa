"""A replica's place in its region's chain: head, middle, tail, joining, or not in it (paper 3.3).

Every configuration decides anew which parts of a replica are active. One that comes back, or joins, first
drops what the chain may not have: all of it if the chain went on without it, else what was not committed.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from node.core.specification import NodeSpec
from node.protocols.sprinkler.chain.chain import Replication
from node.protocols.sprinkler.chain.configurations import Chain, Chains, with_role
from node.protocols.sprinkler.chain.head import Head
from node.protocols.sprinkler.chain.head import Surroundings as HeadSurroundings
from node.protocols.sprinkler.chain.tail import Tail
from node.protocols.sprinkler.messages import Whole
from node.protocols.sprinkler.sources import Sources


class Surroundings(HeadSurroundings, Protocol):
    """What is needed of the replica, beside what its head needs."""

    incarnation: int
    region: str
    own: Sequence[int]
    chains: Chains
    chain: Replication
    head: Head | None
    tail: Tail

    def begin_anew(self) -> None:
        """Drop all that Hist has."""


class ChainPosition:
    """What one replica is at present, and how it becomes something else."""

    def __init__(self, proxy: Surroundings, spec: NodeSpec, sources: type[Sources]) -> None:
        """sources: of the head, while the replica is it."""
        self._proxy = proxy
        self._starts = spec.start  # of this process before, as whoever starts it counts them
        self._sources = sources
        self._clients = [client.name for client in with_role(spec, "client") if client.region == spec.region]
        self._publishers = [
            driver.name
            for driver in with_role(spec, "driver")
            if not set(spec.published_by(driver)).isdisjoint(proxy.own)
        ]
        self.belonged = 0  # the last configuration that the replica's state belonged to
        self._whole = -1  # the configuration in which the region's streams were known to be whole, last
        self._whole_at: dict[int, int] = {}  # how far they were then, or when this process began

    def restored(self) -> None:
        """The replica comes back from disk."""
        configuration, whole = self._proxy.journal.configuration, self._proxy.journal.whole
        self.belonged = configuration.number if configuration is not None else 0
        self._whole = whole.configuration if whole is not None else -1
        self._whole_at = self._reached()

    def taken_back(self) -> None:
        """The region's streams are whole: from now on this replica has all of them, even if that is nothing.

        Not before: a disk that was lost, and a restoration that was broken off, prove nothing.
        """
        chain = self._proxy.chain.chain
        if not self._is_whole(chain):
            self._whole = chain.number
            self._whole_at = self._reached()
            self._proxy.journal.write(Whole(chain.number))

    def whole_at(self) -> Mapping[int, int] | None:
        """How far the region's streams were when they were whole; None: they are not, as far as we know."""
        return self._whole_at if self._is_whole(self._proxy.chain.chain) else None

    def _reached(self) -> dict[int, int]:
        return {stream: self._proxy.history.streams[stream].cnt for stream in self._proxy.own}

    def _is_whole(self, chain: Chain) -> bool:
        """Whether the streams have been taken back since the chain began, as far as this replica knows."""
        return self._whole >= chain.began

    def take(self) -> None:
        """Begin in the region's present configuration."""
        proxy = self._proxy
        chain = proxy.chains.chain(proxy.region)
        belongs = chain.has(proxy.name, proxy.incarnation)
        is_anew = chain.began > self.belonged  # what this replica has may not be all that there was
        if belongs and proxy.name == chain.joining:
            self._prepare_to_join(chain)
        elif belongs and is_anew:
            self._drop_uncommitted()
        if belongs:
            self.belonged = chain.number
            self._remember()
        proxy.chain.configured(chain if belongs else Chain(chain.number, chain.began))
        if belongs and is_anew and proxy.head is not None:
            proxy.head.leave()
            proxy.head = None
        if belongs and chain.head == proxy.name:
            self._take_head()
        else:
            proxy.head = None
        self._take_tail(is_tail=belongs and chain.tail == proxy.name)

    def _remember(self) -> None:
        told = self._proxy.chains.configuration(self._proxy.region)
        if told.number:
            self._proxy.journal.write(told)

    def _prepare_to_join(self, chain: Chain) -> None:
        """Drop what the chain may not have."""
        proxy = self._proxy
        if chain.began > self.belonged and any(state.cnt for state in proxy.history.streams.values()):
            proxy.log("state_void", "warning", configuration=chain.number)
            proxy.begin_anew()
        self._drop_uncommitted()

    def _drop_uncommitted(self) -> None:
        """Another chain may have gone on without it."""
        proxy = self._proxy
        for stream, state in proxy.history.streams.items():
            if state.cnt > state.committed:
                proxy.log("truncated", stream=stream, cnt=state.cnt, committed=state.committed)
                proxy.history.truncate(stream, state.committed)
                proxy.journal.truncate(stream)
        for stream in proxy.own:
            proxy.publications.forget_beyond(stream, proxy.history.streams[stream].cnt)

    def _take_head(self) -> None:
        proxy = self._proxy
        if proxy.head is not None:
            return
        chain = proxy.chain.chain
        proxy.log("became_head", region=proxy.region, configuration=chain.number)
        region = proxy.chains.regions.index(proxy.region)
        period_us = proxy.parameters.advertisement_period_us
        sources = self._sources(proxy.history, region, period_us, proxy)
        proxy.head = Head(proxy, sources, proxy.own, region)
        if proxy.own and not self._is_whole(chain):
            others = [region for region in proxy.chains.regions if region != proxy.region]
            until_us = proxy.now_us + proxy.parameters.restore_wait_us
            # clients speak to the tail: where that is another they are not heard
            served = self._publishers + (self._clients if chain.tail == proxy.name else [])
            proxy.head.restore(others, served, until_us, self._next_epoch(chain))

    def _next_epoch(self, chain: Chain) -> int:
        """The least epoch in which the region's streams go on after its memory was lost; 0: they are new.

        With a service: the configuration since which the chain has its memory. Without: how often the process
        was started. Each loss has a greater one than all before, as only one of the two is ever asked.
        """
        if not chain.number:
            return self._starts
        return chain.began if chain.began > 1 else 0

    def _take_tail(self, *, is_tail: bool) -> None:
        proxy = self._proxy
        if is_tail and not proxy.tail.is_active:
            proxy.log("became_tail", region=proxy.region, configuration=proxy.chain.chain.number)
            proxy.tail.begin()
        elif proxy.tail.is_active and not is_tail:
            proxy.tail.end()
