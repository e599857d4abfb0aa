"""A replica's position in its region's chain: head, middle, tail, joining, or outside (paper 3.3).

Each configuration determines which parts of a replica are active. A returning or joining replica first drops
events that the chain may lack: all of them if the chain continued without it, else the uncommitted ones.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from node.core.specification import NodeSpec
from node.protocols.sprinkler.chain.chain import Replication
from node.protocols.sprinkler.chain.configurations import Chains, ReplicaChain, with_role
from node.protocols.sprinkler.chain.head import Head, HeadContext
from node.protocols.sprinkler.chain.tail import Tail
from node.protocols.sprinkler.messages import Whole
from node.protocols.sprinkler.sources import StreamSources


class ChainPositionContext(HeadContext, Protocol):
    """Methods and state of the replica that its position uses, besides those that its head uses."""

    incarnation: int
    region: str
    own: Sequence[int]
    chains: Chains
    chain: Replication
    head: Head | None
    tail: Tail

    def begin_anew(self) -> None:
        """Drop the whole Hist."""


class ChainPosition:
    """The present position of one replica, and its transitions."""

    def __init__(self, proxy: ChainPositionContext, spec: NodeSpec, sources: type[StreamSources]) -> None:
        """Create the position. sources: of the head, while the replica is the head."""
        self._proxy = proxy
        self._starts = spec.start  # earlier starts of this process, counted by its launcher
        self._sources = sources
        self._clients = [client.name for client in with_role(spec, "client") if client.region == spec.region]
        self._publishers = [
            driver.name
            for driver in with_role(spec, "driver")
            if not set(spec.published_by(driver)).isdisjoint(proxy.own)
        ]
        self.belonged = 0  # the last configuration that the replica's state belonged to
        self._whole = -1  # the last configuration in which the region's streams were known to be complete
        self._complete_at: dict[int, int] = {}  # the counters then, or when this process began

    def restored(self) -> None:
        """Restore the position from disk."""
        configuration, whole = self._proxy.journal.configuration, self._proxy.journal.whole
        self.belonged = configuration.number if configuration is not None else 0
        self._whole = whole.configuration if whole is not None else -1
        self._complete_at = self._reached()

    def taken_back(self) -> None:
        """Note that the region's streams are complete: this replica has all their events, possibly none.

        Do not call it earlier: after a lost disk or an interrupted recovery, events may be missing.
        """
        chain = self._proxy.chain.chain
        if not self._is_whole(chain):
            self._whole = chain.number
            self._complete_at = self._reached()
            self._proxy.journal.write(Whole(chain.number))

    def whole_at(self) -> Mapping[int, int] | None:
        """Return the counters of the region's streams when they became complete; None: not known to be
        complete.
        """
        return self._complete_at if self._is_whole(self._proxy.chain.chain) else None

    def _reached(self) -> dict[int, int]:
        return {stream: self._proxy.history.streams[stream].cnt for stream in self._proxy.own}

    def _is_whole(self, chain: ReplicaChain) -> bool:
        """Return whether this replica knows that the streams have been recovered since the chain began."""
        return self._whole >= chain.began

    def take(self) -> None:
        """Take the position in the region's present configuration."""
        proxy = self._proxy
        chain = proxy.chains.chain(proxy.region)
        belongs = chain.has(proxy.name, proxy.incarnation)
        is_anew = chain.began > self.belonged  # the replica's events may be incomplete
        if belongs and proxy.name == chain.joining:
            self._prepare_to_join(chain)
        elif belongs and is_anew:
            self._drop_uncommitted()
        if belongs:
            self.belonged = chain.number
            self._record_configuration()
        proxy.chain.configured(chain if belongs else ReplicaChain(chain.number, chain.began))
        if belongs and is_anew and proxy.head is not None:
            proxy.head.leave()
            proxy.head = None
        if belongs and chain.head == proxy.name:
            self._take_head()
        else:
            proxy.head = None
        self._take_tail(is_tail=belongs and chain.tail == proxy.name)

    def _record_configuration(self) -> None:
        configuration = self._proxy.chains.configuration(self._proxy.region)
        if configuration.number:
            self._proxy.journal.write(configuration)

    def _prepare_to_join(self, chain: ReplicaChain) -> None:
        """Drop events that the chain may lack."""
        proxy = self._proxy
        if chain.began > self.belonged and any(state.cnt for state in proxy.history.streams.values()):
            proxy.log("state_void", "warning", configuration=chain.number)
            proxy.begin_anew()
        self._drop_uncommitted()

    def _drop_uncommitted(self) -> None:
        """Drop uncommitted events, because another chain may have continued without them."""
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
            # clients connect to the tail: after a change of the tail, this replica does not receive from them
            served = self._publishers + (self._clients if chain.tail == proxy.name else [])
            proxy.head.restore(others, served, until_us, self._next_epoch(chain))

    def _next_epoch(self, chain: ReplicaChain) -> int:
        """Return the least epoch of the region's streams after a loss of their state; 0: the streams are new.

        With a service it is the number of the configuration since which the chain has its state; without one,
        the number of earlier starts of the process. Only one of the two is used, so each loss gives a greater
        number than all before.
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
