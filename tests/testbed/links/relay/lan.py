"""Traffic between hosts of one region, handed over within the relay or forwarded by the bridge.

These functions run inside the sandbox.
"""

import os
import socket
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from experiments.planned.changes import LinkChange, LinkDirectionName, LinkState
from testbed.links.emulator import Applied, SelectedPackets
from testbed.links.relay.controller import RelayEmulator
from testbed.links.wiring import LinkWiring
from testbed.network.network import Network
from tests.testbed.leftovers import wait_until
from tests.testbed.links.probes import Stamper, collect_until_quiet
from tests.testbed.network.observations import in_host
from tests.testbed.network.plans import make_plan
from topologies.link_parameters import LinkParameters

PORT = 5000
DATAGRAMS = 100
QUIET_S = 0.6  # longer than the longest delay, 400 ms
COUNTERS = (
    "frames",
    "bytes",
    *(f"dropped_{why}" for why in ("loss", "queue", "blackhole", "kernel", "size")),
)
BURST_BYTES = 1000
LATE_S = 0.1
PAUSE_S = 0.0005
MARGIN_NS = 20_000_000  # datagrams sent so long before an instant have surely arrived
FAR = LinkParameters(delay_us=400_000)


class Bridged(RelayEmulator):
    """A relay without knowledge of LANs: bridges forward all frames between hosts."""

    def start(self, wirings: Sequence[LinkWiring]) -> None:
        super().start([replace(wiring, lan="", mac="") for wiring in wirings])


class Late(RelayEmulator):
    """A relay that gets changes late, as on a busy machine."""

    def change(
        self,
        link: str,
        direction: LinkDirectionName,
        parameters: LinkParameters,
        *,
        blackhole: bool,
        selects: SelectedPackets | None = None,
    ) -> Applied:
        time.sleep(LATE_S)
        return super().change(link, direction, parameters, blackhole=blackhole)


class Lan(Network):
    """A region of three hosts; `lan` are the parameters of their links."""

    def __init__(self, lan: LinkParameters, emulator: type[RelayEmulator] = RelayEmulator) -> None:
        self.plan = make_plan(1, 3, lan=lan)
        self.emulator = emulator(1)
        super().__init__(self.plan, self.emulator)

    def stamper(self, sender: int, receiver: int, size: int = 100) -> Stamper:
        """Return a sender and receiver from one host to another."""
        ends = [in_host(self, host(at), self._socket) for at in (sender, receiver)]
        address = next(each.address for each in self.plan.hosts if each.name == host(receiver))
        port = PORT + 10 * sender + receiver
        ends[1].bind((address, port))
        ends[0].connect((address, port))
        return Stamper((ends[0], ends[1]), size=size)

    def counters(self, at: int, direction: LinkDirectionName) -> dict[str, int]:
        """Return the counters of a host's link that must not depend on the path of frames."""
        row = self.emulator.counters()[f"lan-{host(at)}", direction]
        return {name: getattr(row, name) for name in COUNTERS}

    def passed_on(self, at: int) -> int:
        """Return the number of frames that a host sent and the bridge received."""
        number = [link.name for link in self.plan.links].index(f"lan-{host(at)}")
        return int(Path(f"/sys/class/net/l{number}p/statistics/rx_packets").read_text())

    def put(
        self, at: int, direction: LinkDirectionName, state: LinkState, parameters: LinkParameters
    ) -> Applied:
        """Change a host's link."""
        return self.change(LinkChange(0, "fault", f"lan-{host(at)}", direction, state, parameters))

    @staticmethod
    def _socket() -> socket.socket:
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        return made


def host(at: int) -> str:
    return f"r0-proxy-{at}"


def sent_by_turns(way: str, parameters: dict[str, Any]) -> dict[str, Any]:
    """Send datagrams from two hosts to a third; return delays, arrivals, and the counters of all three
    links.
    """
    with Lan(LinkParameters(**parameters), Bridged if way == "bridged" else RelayEmulator) as lan:
        stampers = [lan.stamper(0, 2), lan.stamper(1, 2)]
        for stamper in stampers:  # one after the other: by turns a link's losses would be by chance
            for _ in range(DATAGRAMS):
                stamper.send()
            stamper.collect_until_quiet(QUIET_S)
        return {
            "came": [[arrival.number for arrival in stamper.arrivals] for stamper in stampers],
            "delays_us": [arrival.delay_us for stamper in stampers for arrival in stamper.arrivals],
            "counters": [
                lan.counters(at, direction)
                for at, direction in (
                    (0, LinkDirectionName.FORWARD),
                    (1, LinkDirectionName.FORWARD),
                    (2, LinkDirectionName.BACKWARD),
                )
            ],
            "passed_on": [lan.passed_on(0), lan.passed_on(1)],
        }


def into_a_narrow_link(rate_bits_per_s: int, queue_packets: int) -> dict[str, Any]:
    """Send a burst to a host behind a link with a lower rate than the sender's and a much shorter queue."""
    with Lan(LinkParameters(delay_us=2000)) as lan:
        narrow = LinkParameters(delay_us=2000, rate_bits_per_s=rate_bits_per_s, queue_packets=queue_packets)
        lan.put(2, LinkDirectionName.BACKWARD, LinkState.UP, narrow)
        stamper = lan.stamper(0, 2, BURST_BYTES)
        assert lan.emulator.pid is not None
        os.kill(lan.emulator.pid, 19)  # SIGSTOP: the burst is one, however slowly the sender runs
        for _ in range(DATAGRAMS):
            stamper.send()
        os.kill(lan.emulator.pid, 18)  # SIGCONT
        stamper.collect_until_quiet(QUIET_S)
        return {
            "sent_ns": stamper.sent,
            "arrivals": [list(arrival) for arrival in stamper.arrivals],
            "counters": lan.counters(2, LinkDirectionName.BACKWARD),
        }


def too_long(way: str, size: int, at_once: int) -> dict[str, Any]:
    """Send datagrams, `at_once` per frame, to a host whose link has a smaller MTU than the sender's."""
    large = LinkParameters(delay_us=500, mtu_bytes=9000)
    with Lan(large, Bridged if way == "bridged" else RelayEmulator) as lan:
        lan.put(2, LinkDirectionName.BACKWARD, LinkState.UP, LinkParameters(delay_us=500))
        stamper = lan.stamper(0, 2, size)
        for _ in range(DATAGRAMS // at_once):
            stamper.send_offloaded(at_once)
        stamper.collect_until_quiet(QUIET_S)
        return {"came": len(stamper.arrivals), "counters": lan.counters(2, LinkDirectionName.BACKWARD)}


def cut_in_flight() -> dict[str, Any]:
    """Cut a link towards a host with datagrams in flight, heal it, and cut the other direction."""
    with Lan(LinkParameters(delay_us=500)) as lan:
        lan.put(2, LinkDirectionName.BACKWARD, LinkState.UP, FAR)
        towards, back, beside = lan.stamper(0, 2), lan.stamper(2, 0), lan.stamper(0, 1)
        came: dict[str, list[int]] = {"towards": [], "back": [], "beside": []}

        def send() -> None:
            stampers = {"towards": towards, "back": back, "beside": beside}
            before = {name: len(stamper.arrivals) for name, stamper in stampers.items()}
            for stamper in stampers.values():
                for _ in range(DATAGRAMS):
                    stamper.send()
            if not came["towards"]:
                wait_until(
                    lambda: lan.counters(2, LinkDirectionName.BACKWARD)["frames"] == DATAGRAMS,
                    "all in flight",
                )
                lan.put(2, LinkDirectionName.BACKWARD, LinkState.BLACKHOLE, FAR)
            collect_until_quiet(list(stampers.values()), QUIET_S)
            for name, stamper in stampers.items():
                came[name].append(len(stamper.arrivals) - before[name])

        send()
        dropped = lan.counters(2, LinkDirectionName.BACKWARD)["dropped_blackhole"]
        lan.put(2, LinkDirectionName.BACKWARD, LinkState.UP, FAR)
        send()
        lan.put(2, LinkDirectionName.FORWARD, LinkState.BLACKHOLE, LinkParameters(delay_us=500))
        send()
        in_order = all(
            [arrival.number for arrival in stamper.arrivals]
            == sorted(arrival.number for arrival in stamper.arrivals)
            for stamper in (towards, back, beside)
        )
        return {"came": came, "swallowed": dropped, "in_order": in_order}


def taken_down_under_way() -> dict[str, list[int]]:
    """Take a host's port down while datagrams are sent continuously.

    Return those that were due before that instant and did not arrive, and those sent after it that arrived.
    """
    with Lan(LinkParameters(delay_us=500), Late) as lan:
        stamper, stop = lan.stamper(0, 2), threading.Event()

        def send() -> None:
            while not stop.wait(PAUSE_S):
                stamper.send()
                stamper.collect()

        sending = threading.Thread(target=send)
        sending.start()
        wait_until(lambda: len(stamper.arrivals) >= DATAGRAMS, "datagrams on their way")
        applied_ns = lan.put(
            2, LinkDirectionName.BACKWARD, LinkState.DOWN, LinkParameters(delay_us=500)
        ).applied_ns
        wait_until(lambda: stamper.sent[-1] > applied_ns + MARGIN_NS, "datagrams after that")
        stop.set()
        sending.join()
        stamper.collect_until_quiet(QUIET_S)
        came = {arrival.number for arrival in stamper.arrivals}
        sent = list(enumerate(stamper.sent))
        return {
            "missing": [n for n, at_ns in sent if at_ns < applied_ns - MARGIN_NS and n not in came],
            "too many": [n for n, at_ns in sent if at_ns > applied_ns and n in came],
        }
