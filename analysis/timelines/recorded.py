"""What clients and drivers recorded, as parallel arrays for many at once; `deliveries` arranges them."""

from dataclasses import dataclass

from analysis.timelines.arrays import Bools, Ints
from analysis.timelines.pieces import Batches


@dataclass(frozen=True, slots=True)
class Got:
    """What clients recorded, as parallel arrays: group by group, session by session, in order of delivery.

    group: a client and a stream, counted densely. session: groups apart once more by session, likewise.
    stream: a place in the run's list. of_group: the stream of each group.
    reach: sequence numbers from `first` on, of which `events` came as events.
    """

    group: Ints
    session: Ints
    stream: Ints
    of_group: Ints
    first: Ints
    reach: Ints
    events: Ints
    whole: Bools  # a batch of events without tombstones: its CRC can be compared
    t_ns: Ints
    crc: Ints
    running: Ints


@dataclass(frozen=True, slots=True)
class Published:
    """Acknowledged batches as parallel arrays, in order of stream (a place in the run's list) and number.

    batches: in their streams' spans (`groups`), with the times of their acknowledgements. runs: all that is
    known to be published.
    """

    stream: Ints
    batches: Batches
    crc: Ints
    running: Ints
    driver: Ints
    session: Ints
    runs: tuple[Ints, Ints]
