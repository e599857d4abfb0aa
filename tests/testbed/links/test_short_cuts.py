"""Cuts that end before all packets in flight would have arrived."""

from typing import Any

import pytest

from experiments.planned.changes import LinkDirectionName
from tests.testbed.links.lab import Lab
from tests.testbed.links.probes import Stamper, send_steadily
from tests.testbed.sandboxed import sandboxed
from topologies.link_parameters import LinkParameters

pytestmark = pytest.mark.network

MS = 1_000_000  # ns
TOLERANCE_MS = 10


def _cut_and_heal_at_once(kind: str, parameters: dict[str, Any], burst: int) -> dict[str, int]:
    """Send a burst, cut and heal the link at once, then send more datagrams."""
    link = LinkParameters(**parameters)
    with Lab(kind, {"link": link}) as lab:
        stamper = Stamper(lab.udp("link"), size=1000)
        for _ in range(burst):
            stamper.send()
        cut, _ = (
            lab.emulator.change("link", LinkDirectionName.FORWARD, link, blackhole=blackhole)
            for blackhole in (True, False)
        )
        send_steadily([stamper], 10, 0.001)
        stamper.collect_until_last()  # links keep the order: whatever comes at all comes before it
        of_burst = [arrival for arrival in stamper.arrivals if arrival.number < burst]
        after = [arrival.number for arrival in stamper.arrivals if arrival.number >= burst]
        late = [each for each in of_burst if each.arrived_ns > cut.applied_ns + TOLERANCE_MS * MS]
        counters = lab.emulator.counters()["link", LinkDirectionName.FORWARD]
        return {
            "before": len(of_burst) - len(late),
            "late": len(late),
            "after": len(after),
            "dropped": counters.dropped_blackhole,
        }


def test_a_cut_shorter_than_the_delay_drops_packets_in_flight(kind):
    seen = sandboxed(_cut_and_heal_at_once, kind, {"delay_us": 4_000_000}, 20)
    assert seen == {"before": 0, "late": 0, "after": 10, "dropped": 20}


def test_a_cut_drops_packets_that_wait_for_the_rate(kind):
    seen = sandboxed(_cut_and_heal_at_once, kind, {"rate_bits_per_s": 100_000, "queue_packets": 90}, 80)
    assert seen["before"] < 80  # the whole burst takes 7 s
    assert seen["late"] == 0
    assert seen["after"] == 10
