"""A simulated process with a wrong clock: the times that it is given, and when its timers fire."""

from collections.abc import Sequence

from node.core import machine as m
from node.core.specification import NodeSpec
from node.core.wrong_clock import WrongClock
from node.sim.sim_network import SimulatedNetwork
from node.sim.wires import Wires

S = 1_000_000
UPTIME_US = 1_000 * S
NAME = "r0/proxy-0"


class Ticking:
    """Sets a timer for every second of its clock, and records its clock and virtual time when it fires."""

    frame_limit_bytes = 1_000

    def __init__(self) -> None:
        self.fired: list[tuple[float, float]] = []
        self.network: SimulatedNetwork

    def handle(self, given: m.Input, now_us: int) -> Sequence[m.Effect]:
        if isinstance(given, m.Started):
            return [m.SetTimer(("tick",), now_us + S)]
        if isinstance(given, m.TimerFired):
            self.fired.append(((now_us - UPTIME_US) / S, self.network.clock.now_us / S))
            return [m.SetTimer(("tick",), now_us + S)]
        return []

    def progress(self) -> m.NodeProgress:
        return m.NodeProgress()

    def check(self) -> None:
        pass


def ticking() -> Ticking:
    machine = Ticking()
    spec = NodeSpec(NAME, "h", "r0", "proxy", 0, 0, "sprinkler", (), address="10.0.0.1")
    machine.network = SimulatedNetwork(
        [spec], Wires(0, {}), build=lambda *_: machine, uptimes_us={NAME: UPTIME_US}
    )
    return machine


def test_timers_follow_a_clock_that_is_set_forward_or_back() -> None:
    machine = ticking()
    network = machine.network
    network.run(2_500_000)
    network.set_clock(NAME, WrongClock(3 * S))  # the timer for 3 s is due at once, at 5.5 s
    network.run(4_200_000)
    network.set_clock(NAME, WrongClock(-S))  # the one for 7.5 s, which would fire at 4.5 s, waits
    network.run(9 * S)
    assert machine.fired == [(1, 1), (2, 2), (5.5, 2.5), (6.5, 3.5), (7.5, 8.5)]


def test_a_clock_that_gains_ticks_faster_also_after_a_restart() -> None:
    machine = ticking()
    machine.network.set_clock(NAME, WrongClock(drift_ppm=250_000))
    machine.network.run(4 * S)
    assert machine.fired == [(1, 0.8), (2, 1.6), (3, 2.4), (4, 3.2), (5, 4)]
    machine.network.kill(NAME)
    machine.fired.clear()
    machine.network.start(NAME)
    machine.network.run(5 * S)
    assert machine.fired == [(6, 4.8)]
