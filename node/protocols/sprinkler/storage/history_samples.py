"""Schedule for logging the size of Hist: at numbers of events that are equidistant on a logarithmic scale, as
in the paper's Fig. 10.

A proxy creates one `HistorySamples()` and calls `due` once per input, after `collect_some`; for each returned
row it logs `hist`, with the row's fields:

  for row in self._samples.due(self.history):
      self.log("hist", **row)
"""

from node.core.epochs import number_of
from node.protocols.sprinkler.storage.history import EventHistory

PER_DECADE = 20
FIRST = 1000  # events


class HistorySamples:
    """Samples of each stream, due by the number of its committed events."""

    def __init__(self) -> None:
        self._next: dict[int, int] = {}  # by stream: the next point

    def due(self, history: EventHistory) -> list[dict[str, int]]:
        """Return a row for each stream that reached its next point.

        stream; events: committed events of its present epoch; live: of these, not collected; stored: in
        memory, including those collected and not yet freed; bytes: payload of the stored events. Uncommitted
        events count as stored only.
        """
        rows: list[dict[str, int]] = []
        for number in sorted(history.grown):
            stream = history.streams[number]
            if number_of(stream.committed) >= self._next.get(number, FIRST):
                rows.append(
                    {
                        "stream": number,
                        "events": number_of(stream.committed),
                        "live": stream.live - (stream.cnt - stream.committed),
                        "stored": stream.stored,
                        "bytes": stream.bytes,
                    }
                )
                self._next[number] = point_after(number_of(stream.committed))
        history.grown.clear()
        return rows


def point_after(events: int) -> int:
    """Return the first point of the scale beyond this number of events."""
    step = 0
    while (point := round(FIRST * 10 ** (step / PER_DECADE))) <= events:
        step += 1
    return point
