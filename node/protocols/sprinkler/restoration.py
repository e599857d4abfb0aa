"""A proxy that starts takes its own stream back from the others before it publishes on it.

The paper's proxies are chains, and lose their state only if all replicas fail (3.3). One without replicas
that is started again would number its stream from 1 and everyone would take new events for old ones. So at
every start it first hears how much of its stream the others have: the other proxies by their advertisements
(and it subscribes to the furthest, as to any stream), the drivers and clients of its region by theirs. At a
first start all say 0 and it is over as soon as everyone has spoken; it never lasts longer than a named
wait, but for events that are still coming.

Events that nobody can send are gone: their numbers are not used again, a tombstone stands for them, and the
log says so. If someone has not spoken when the wait is over, it is not known which numbers were used: then
the stream goes on in a new epoch (`node.core.epochs`), unless this is the first that there is of it. Nor is
it known if a driver or client was started again and has heard of nothing since: it says nothing of the
stream, and not that there was none, as one does that has run from the beginning.
"""

from collections.abc import Iterable, Sequence


class Restoration:
    """What is known of the own stream while it is taken back. Times are the machine's.

    regions: the others. served: our own drivers and clients, of whom each may know what nobody else does.
    """

    def __init__(self, regions: Iterable[str], served: Sequence[str], until_us: int) -> None:
        self.until_us = until_us
        self.seen = 0  # the largest counter that anyone told
        self._awaited = {*regions, *served}
        self._blank = set(served)  # that have told nothing of the stream

    def heard(self, name: str, cnt: int | None) -> None:
        """`name` has spoken; `cnt` is how much it has, None if it cannot tell."""
        self._awaited.discard(name)
        if cnt is not None:
            self._blank.discard(name)
        self.seen = max(self.seen, cnt or 0)

    @property
    def unheard(self) -> Sequence[str]:
        """Who has not spoken, or cannot tell, sorted."""
        return sorted(self._awaited | self._blank)

    def is_over(self, cnt: int, furthest: int, now_us: int) -> bool:
        """Whether nothing more will come. `cnt` is what we have, `furthest` what a connected proxy has."""
        if cnt < furthest:
            return False
        return now_us >= self.until_us or not self._awaited
