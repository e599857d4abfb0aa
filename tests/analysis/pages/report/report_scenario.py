"""A synthetic inter-region link failure in which the correct value of every figure is known.

It is a fluid model: a stream whose path is cut stalls, its backlog grows at its rate, and after the switch it
leaves at rate plus headroom.
"""

from dataclasses import dataclass, field
from typing import Any

BIN_S = 0.2
NEW_WAY_S = 0.085  # r2 to r0 to r3
ZERO_NS = 1_700_000_000_000_000_000
EVENT_BYTES_ON_WIRE = 12.5


@dataclass(frozen=True)
class Scenario:
    """The parameters of the run.

    headroom_per_s: the rate at which a stream catches up, beyond its own rate.
    """

    regions: tuple[str, ...] = ("r0", "r1", "r2", "r3")
    rate_per_s: float = 20_000.0
    headroom_per_s: float = 30_000.0
    link_rate_bits_per_s: int | None = 10_000_000_000
    duration_s: float = 60.0
    cut_s: float = 19.0
    restore_s: float = 41.0
    switched_s: dict[str, float] = field(default_factory=lambda: {"r2": 19.98, "r3": 19.71})  # by origin
    fault: bool = True
    more_cuts: tuple[tuple[str, float], ...] = ()  # links, and when; nothing follows from them
    captures: bool = True
    valid: bool = True
    crashed: bool = False
    experiment: str = "link-failure"
    description: str = "Section 5.3: the link between regions 2 and 3 is cut and restored."
    problems: tuple[str, ...] = ()
    paper: dict[str, Any] | None = field(
        default_factory=lambda: {"document": "sprinkler-2013", "section": "5.3", "figures": [7, 8]}
    )

    @property
    def cut_ends(self) -> tuple[str, str]:
        """The regions at the ends of the link that is cut."""
        return self.regions[2], self.regions[3]

    def backlog(self, origin: str) -> float:
        """Return the events of that region's stream that were published in the gap."""
        return (self.switched_s[origin] - self.cut_s) * self.rate_per_s

    def caught_up_s(self, origin: str) -> float:
        """Return when the last event of the gap arrives, oldest first, seconds since time 0."""
        took_s = self.backlog(origin) / (self.rate_per_s + self.headroom_per_s)
        return self.switched_s[origin] + max(took_s, NEW_WAY_S)

    def level_s(self, origin: str) -> float:
        """Return when that region's stream is up to date again, seconds since time 0."""
        return self.switched_s[origin] + self.backlog(origin) / self.headroom_per_s


DEFAULT = Scenario()
HOSTILE = '</script><img src=x onerror="boom()">{{ 7*7 }} & <b>'
SCENARIOS = {
    "passed": DEFAULT,
    "narrow": Scenario(headroom_per_s=4_000, link_rate_bits_per_s=4_500_000),
    "invalid": Scenario(valid=False),
    "crashed": Scenario(crashed=True),
    "undisturbed": Scenario(fault=False, paper=None),
    "uncaptured": Scenario(captures=False),
    "crowded": Scenario(more_cuts=(("r0-r1", 22.0), ("r1-r2", 25.0), ("r0-r2", 28.0), ("r0-r3", 50.0))),
    "hostile": Scenario(
        regions=("r0", "r1", "<i>r2<b>", 'r3"onload="x'),
        experiment=HOSTILE,
        description=HOSTILE,
        problems=(HOSTILE,),
        switched_s={"<i>r2<b>": 19.98, 'r3"onload="x': 19.71},
    ),
}
