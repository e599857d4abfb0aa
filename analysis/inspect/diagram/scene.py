"""What a diagram shows, as plain data: lifelines, arrows between them, faults, and what was left out.

All times are seconds since time 0 of the run. Nothing here knows tables or SVG.
"""

from dataclasses import dataclass

from analysis.inspect.diagram.ranks import Ranks


@dataclass(frozen=True, slots=True)
class Lifeline:
    """The vertical line of a host."""

    host: str
    region: str
    colour: str  # of its region


@dataclass(frozen=True, slots=True)
class Flight:
    """When one message was sent and when it had arrived completely; None if it never did."""

    sent_s: float
    complete_s: float | None


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message, or a run of messages of one kind between two hosts, which is drawn as one thick arrow."""

    type: str
    sender: str
    receiver: str
    fate: str
    label: str
    flights: tuple[Flight, ...]  # ascending; at least one
    lasting_s: float  # how long such a message takes, for the slope of one that was lost
    retransmitted: int = 0  # how many of its messages

    @property
    def sent_s(self) -> float:
        """When the first of its messages was sent."""
        return self.flights[0].sent_s

    def end_s(self, flight: Flight) -> float:
        """When a message came, or would have come."""
        return flight.sent_s + self.lasting_s if flight.complete_s is None else flight.complete_s


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The time of a fault; `end_s` is None if it lasted to the end of the run."""

    label: str
    start_s: float
    end_s: float | None


@dataclass(frozen=True, slots=True)
class Scene:
    """Everything in a picture."""

    title: str
    from_s: float
    to_s: float
    lifelines: tuple[Lifeline, ...]  # from left to right
    arrows: tuple[Arrow, ...]  # by the time when they were sent
    disturbances: tuple[Disturbance, ...]
    left_out: tuple[str, ...]  # "36 heartbeats", in words
    messages: int  # that are drawn, each of a run counted
    command: str  # that draws it again
    ranks: Ranks  # which messages tell more
    bar_ms: float | None = None  # by how much times between hosts may be wrong at most; None for one clock
