"""Failures of the relay's process and its client. These functions run inside the sandbox."""

import os
import signal
import time
from typing import Any

from experiments.planned.changes import LinkDirectionName
from testbed.batches import run_batch
from testbed.errors import TestbedError
from testbed.links.relay.controller import RelayEmulator
from testbed.links.wiring import LinkWiring
from tests.testbed.leftovers import wait_until
from tests.testbed.links.lab import Lab
from tests.testbed.links.probes import Stamper
from topologies.link_parameters import LinkParameters

QUIET_S = 1.0
DELAY_MS = 500
TELLING_S = 0.2
BOTH = dict.fromkeys(LinkDirectionName, LinkParameters())


def killed() -> dict[str, Any]:
    """Return the client's error for a relay that was killed from outside."""
    with Lab("relay", {"link": LinkParameters()}) as lab:
        emulator = _relay(lab)
        before = emulator.failure()
        _kill(emulator)
        said = None
        try:
            emulator.counters()
        except TestbedError as error:
            said = str(error)
        return {"before": before, "after": emulator.failure(), "order": said}


def missing_interface() -> str | None:
    """Return the error of a link whose interface does not exist."""
    emulator = RelayEmulator(1)
    try:
        emulator.start([LinkWiring("link", "nowhere", "neither", BOTH)])
    except TestbedError as error:
        return f"{type(error).__name__}: {error}"
    finally:
        emulator.stop()
    return None


def unknown_link() -> str | None:
    """Return the error of a change to an unknown link; the relay continues."""
    with Lab("relay", {"link": LinkParameters()}) as lab:
        try:
            lab.emulator.change("missing", LinkDirectionName.FORWARD, LinkParameters(), blackhole=False)
        except TestbedError as error:
            lab.emulator.counters()
            return str(error)
    return None


def late_cut() -> dict[str, int]:
    """Return datagrams that were due before a cut, for a relay that was suspended until it was told of the
    cut.
    """
    parameters = LinkParameters(delay_us=DELAY_MS * 1000)
    with Lab("relay", {"link": parameters}) as lab:
        stamper, pid = Stamper(lab.udp("link")), _relay(lab).pid
        assert pid is not None
        for _ in range(20):
            stamper.send()
        _until_passed(lab, 20)
        os.kill(pid, signal.SIGSTOP)
        time.sleep(DELAY_MS / 1000)  # by then they are due
        signal.signal(signal.SIGALRM, lambda *_: os.kill(pid, signal.SIGCONT))
        signal.setitimer(signal.ITIMER_REAL, TELLING_S)
        lab.emulator.change("link", LinkDirectionName.FORWARD, parameters, blackhole=True)
        stamper.collect_until_quiet(QUIET_S)  # or all 20 might come later
        dropped = lab.emulator.counters()["link", LinkDirectionName.FORWARD].dropped_blackhole
        return {"arrived": len(stamper.arrivals), "swallowed": dropped}


def away(datagrams: int, frames: int, rate_bits_per_s: int = 1_000_000_000) -> dict[str, float]:
    """Send frames of several datagrams over a link while the relay is stopped."""
    parameters = LinkParameters(delay_us=1000, rate_bits_per_s=rate_bits_per_s)
    with Lab("relay", {"link": parameters}) as lab:
        stamper, pid = Stamper(lab.udp("link"), size=1400), _relay(lab).pid
        assert pid is not None
        os.kill(pid, signal.SIGSTOP)
        for _ in range(frames):
            if datagrams == 1:
                stamper.send()
            else:
                stamper.send_offloaded(datagrams)
        os.kill(pid, signal.SIGCONT)
        time.sleep(max(TELLING_S, 1.5 * frames * datagrams * 1500 * 8 / rate_bits_per_s))
        row = lab.emulator.counters()["link", LinkDirectionName.FORWARD]
        return {
            "passed": row.frames,
            "dropped_queue": row.dropped_queue,
            "dropped_kernel": row.dropped_kernel,
            "ring_peak": row.ring_peak,
        }


def emulator_down() -> dict[str, Any]:
    """Send datagrams before, during and after the emulator's own end was down, where the relay's sockets
    fail.
    """
    with Lab("relay", {"link": LinkParameters(delay_us=1000)}) as lab:
        stamper = Stamper(lab.udp("link"))
        through = []
        for state in ("up", "down", "up"):
            for interface in ("a0", "b0"):
                run_batch("ip", [f"link set {interface} {state}"], doing="changing the link")
            if state == "up":
                wait_until(stamper.passes, "a datagram over the link that is up")
            before = len(stamper.arrivals)
            for _ in range(20):
                stamper.send()
            if state == "up":
                stamper.collect_until_last()
            else:
                stamper.collect_until_quiet(QUIET_S)
            through.append(len(stamper.arrivals) - before)
        return {"through": through, "failure": lab.emulator.failure()}


def many_links(count: int) -> list[Any]:
    """Return how many of `count` links the relay carries; one has descriptors far beyond 1023."""
    lines = [
        f"link add a{n} type veth peer name b{n}\nlink set a{n} up\nlink set b{n} up" for n in range(count)
    ]
    run_batch("ip", lines, doing="wiring")
    emulator = RelayEmulator(1)
    try:
        emulator.start([LinkWiring(str(n), f"a{n}", f"b{n}", BOTH) for n in range(count)])
        return [len(emulator.counters()) // 2, emulator.failure()]
    finally:
        emulator.stop()


def _relay(lab: Lab) -> RelayEmulator:
    assert isinstance(lab.emulator, RelayEmulator)
    return lab.emulator


def _until_passed(lab: Lab, count: int) -> None:
    """Wait until the relay has received this number of datagrams."""
    wait_until(
        lambda: lab.emulator.counters()["link", LinkDirectionName.FORWARD].frames == count, f"{count} frames"
    )


def _kill(emulator: RelayEmulator) -> None:
    assert emulator.pid is not None
    os.kill(emulator.pid, signal.SIGKILL)
    wait_until(lambda: emulator.failure() is not None, "the end of the relay")
