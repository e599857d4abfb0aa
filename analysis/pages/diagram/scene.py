"""Contents of a diagram as plain data: lifelines, arrows between them, faults, and what was left out.

All times are seconds since time 0 of the run. This module depends on neither tables nor SVG.
"""

from dataclasses import dataclass

from analysis.pages.charting.chart_model import ChartSpan
from analysis.pages.diagram.ranks import Ranks


@dataclass(frozen=True, slots=True)
class Lifeline:
    """The vertical line of a host."""

    host: str
    region: str
    colour: str  # of its region


@dataclass(frozen=True, slots=True)
class Flight:
    """The time when one message was sent and when it had arrived completely; None if it never did."""

    sent_s: float
    complete_s: float | None


@dataclass(frozen=True, slots=True)
class Arrow:
    """A message, or a run of messages of one kind between two hosts that is drawn as one thick arrow."""

    type: str
    sender: str
    receiver: str
    fate: str
    label: str
    flights: tuple[Flight, ...]  # ascending; at least one
    lasting_s: float  # usual delay of such a message, for the slope of a lost one
    retransmitted: int = 0  # number of its messages that were retransmitted

    @property
    def sent_s(self) -> float:
        """The time when the first of its messages was sent."""
        return self.flights[0].sent_s

    def end_s(self, flight: Flight) -> float:
        """Return when a message arrived or would have arrived."""
        return flight.sent_s + self.lasting_s if flight.complete_s is None else flight.complete_s


@dataclass(frozen=True, slots=True)
class Scene:
    """The contents of a picture."""

    title: str
    from_s: float
    to_s: float
    lifelines: tuple[Lifeline, ...]  # from left to right
    arrows: tuple[Arrow, ...]  # by send time
    disturbances: tuple[ChartSpan, ...]
    left_out: tuple[str, ...]  # descriptions, as "36 heartbeats"
    messages: int  # number drawn; each message of a run counts
    command: str  # the command that draws it again
    ranks: Ranks  # for drawing informative messages first
    error_ms: float | None = None  # largest error of times between hosts; None if they share a clock
