"""From whom a proxy takes a stream: the rule of rcvAdvertisement (paper 3.1, Fig. 1), in the readings that
work.

expects[s] = (source, seq, time) is the current source and what it last advertised. The paper switches to an
advertiser p' if cnt > expects.seq + C / (T - expects.time). Readings taken here (each has a test that shows
why):

- `expects` is refreshed on *every* advertisement from the current source, as the prose says. By the letter
  of Fig. 1 it changes on switches only, and then every stream flaps at every C.
- C = factor x r x A^2, with A the advertisement period and r the stream's measured rate. One C for all
  streams either starves slow streams or lets fast ones flap. With r the faster of the smoothed rate and of
  the growth since expects.time, the rule says: the source is overdue by more than A, and the other is
  really ahead.
- Prefer-direct: the stream's owner is taken once its cnt >= expects.seq. Without this a proxy would never
  return to the direct way after a link heals.
- Without a source (at first, and after the channel to the source broke, which resets expects to the proxy's
  own counter) whoever is ahead of that counter is taken at once.
"""

from dataclasses import dataclass
from enum import Enum

from node.core.epochs import epoch_of

US_PER_S = 1_000_000
SMOOTHING = 0.5  # weight of the newest sample in a stream's measured rate


@dataclass(frozen=True, slots=True)
class Expects:
    """The current source of a stream, and the counter and time of its latest advertisement."""

    source: str | None
    seq: int
    time_us: int


@dataclass(frozen=True, slots=True)
class Heard:
    """One stream's counter in an advertisement. `owner`: it came from the stream's owner."""

    proxy: str
    cnt: int
    time_us: int
    owner: bool


class Verdict(Enum):
    """What an advertisement means for the subscription."""

    KEEP = "keep"  # another proxy's, and no reason to change
    REFRESH = "refresh"  # the source's
    SWITCH = "advertisement"  # the advertiser is further than the source can be
    DIRECT = "direct"  # the owner is there (again)


@dataclass(frozen=True, slots=True)
class SubscriptionRule:
    """The rule with its constants."""

    period_us: int
    rate_factor: float

    def judge(self, expects: Expects, heard: Heard, rate_per_s: float | None) -> Verdict:
        """What to do about `heard`. `rate_per_s` is None as long as the stream's rate is not known."""
        if heard.proxy == expects.source:
            return Verdict.REFRESH
        if heard.owner and heard.cnt >= expects.seq:
            return Verdict.DIRECT
        if expects.source is None:
            return Verdict.SWITCH if heard.cnt > expects.seq else Verdict.KEEP
        elapsed_s = (heard.time_us - expects.time_us) / US_PER_S
        if rate_per_s is None or elapsed_s <= 0:
            return Verdict.KEEP
        ahead = heard.cnt - expects.seq
        lead = self.lead_events2_s(max(rate_per_s, ahead / elapsed_s))
        return Verdict.SWITCH if ahead > lead / elapsed_s else Verdict.KEEP

    def lead_events2_s(self, rate_per_s: float) -> float:
        """C: events times seconds by which another proxy must be ahead before it is taken."""
        return self.rate_factor * rate_per_s * (self.period_us / US_PER_S) ** 2


class StreamRate:
    """A stream's rate in events/s, measured from the furthest counter that anyone advertised."""

    __slots__ = ("_cnt", "_period_us", "_time_us", "per_s")

    def __init__(self, period_us: int) -> None:
        self.per_s: float | None = None
        self._period_us = period_us
        self._cnt = 0
        self._time_us: int | None = None

    def advertised(self, cnt: int, now_us: int) -> None:
        """Take a sample, at most one in an advertisement period."""
        if self._time_us is None or epoch_of(cnt) > epoch_of(self._cnt):
            self._cnt, self._time_us = cnt, now_us
            return
        elapsed_us = now_us - self._time_us
        if elapsed_us < self._period_us:
            return
        grown = max(0, cnt - self._cnt)
        sample = grown * US_PER_S / elapsed_us
        self.per_s = sample if self.per_s is None else self.per_s + SMOOTHING * (sample - self.per_s)
        self._cnt, self._time_us = max(cnt, self._cnt), now_us
