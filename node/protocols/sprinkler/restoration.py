"""A proxy that starts takes its own stream back from the others before it publishes on it.

The paper's proxies are chains, and lose their state only if all replicas fail (3.3). One without replicas
that is started again would number its stream from 1 and everyone would take new events for old ones. So at
every start it first hears how much of its stream the others have: the other proxies by their advertisements
(and it subscribes to the furthest, as to any stream), the drivers and clients of its region by theirs. At a
first start all say 0 and it is over as soon as everyone has spoken; it never lasts longer than a named
wait, but for events that are still coming.

What the others tell is never taken for all that there was: they may have lost their own memory, or have more
on its way. So a stream that had begun goes on in a new epoch (`node.core.epochs`) after each such loss, and
events that nobody can send are gone; the log says so.
"""

from collections.abc import Iterable, Sequence


class Restoration:
    """What is known of the own stream while it is taken back. Times are the machine's.

    regions: the others. served: our own drivers and clients, of whom each may know what nobody else does.
    """

    def __init__(self, regions: Iterable[str], served: Iterable[str], until_us: int) -> None:
        self.until_us = until_us
        self.seen = 0  # the largest counter that anyone told
        self._awaited = {*regions, *served}

    def heard(self, name: str, cnt: int) -> None:
        """`name` has spoken, and has so much of the stream."""
        self._awaited.discard(name)
        self.seen = max(self.seen, cnt)

    @property
    def unheard(self) -> Sequence[str]:
        """Who has not spoken, sorted."""
        return sorted(self._awaited)

    def is_over(self, cnt: int, furthest: int, now_us: int) -> bool:
        """Whether nothing more will come. `cnt` is what we have, `furthest` what a connected proxy has."""
        if cnt < furthest:
            return False
        return now_us >= self.until_us or not self._awaited
