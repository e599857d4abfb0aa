"""A proxy that starts takes its own stream back from the others before it publishes on it.

The paper's proxies are chains, and lose their state only if all replicas fail (3.3). One without replicas
that is started again would number its stream from 1 and everyone would take new events for old ones. So at
every start it first hears how much of its stream the others have: the other proxies by their advertisements
(and it subscribes to the furthest, as to any stream), the drivers and clients of its region by theirs. At a
first start all say 0 and it is over as soon as everyone has spoken; it never lasts longer than a named
wait, but for events that are still coming.

Events that nobody can send are gone: their numbers are not used again, a tombstone stands for them, and the
log says so. If someone has not spoken when the wait is over, or a publisher knows of no acknowledgement, as
one that was started again itself, it is not known which numbers were used: then the stream goes on in a new
epoch (`node.core.epochs`), unless this is the first that there is of it.
"""

from collections.abc import Iterable, Sequence


class Restoration:
    """What is known of the own stream while it is taken back. Times are the machine's.

    publishers: those among the awaited whose acknowledgements nobody else may know.
    """

    def __init__(self, awaited: Iterable[str], until_us: int, publishers: Iterable[str] = ()) -> None:
        self.until_us = until_us
        self.seen = 0  # the largest counter that anyone told
        self._awaited = set(awaited)
        self._blank = set(publishers)  # that have not told of any acknowledgement

    def heard(self, name: str, cnt: int | None) -> None:
        """`name` has spoken; `cnt` is how much it has, None if it does not follow the stream."""
        self._awaited.discard(name)
        if cnt:
            self._blank.discard(name)
        self.seen = max(self.seen, cnt or 0)

    @property
    def unheard(self) -> Sequence[str]:
        """Who has not spoken, or is a publisher that knows nothing, sorted."""
        return sorted(self._awaited | self._blank)

    def is_over(self, cnt: int, furthest: int, now_us: int) -> bool:
        """Whether nothing more will come. `cnt` is what we have, `furthest` what a connected proxy has."""
        if cnt < furthest:
            return False
        return now_us >= self.until_us or not self._awaited
