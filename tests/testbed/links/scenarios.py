"""Scenarios of links and their observations. Each runs inside a separate sandbox and returns plain data.

Arguments are the kind of link emulator and the values that the test varies. The tests judge the results.
"""

import time
from collections.abc import Iterator
from statistics import median
from typing import Any

from experiments.planned.changes import LinkDirectionName
from testbed.links.emulator import Applied
from tests.testbed.links.lab import Lab
from tests.testbed.links.probes import Stamper, send_steadily, transfer
from topologies.jitter import named_quantiles
from topologies.link_parameters import LinkParameters
from topologies.link_trace import STEP_US, LinkTrace, TraceSteps

QUIET_S = 1.0
LOST_S = 0.05  # what has not come by then may be lost: the counters know
MS = 1_000_000  # ns
TRACED_BYTES = 1000


def idle_delays(kind: str, delays_ms: list[int]) -> dict[str, Any]:
    """Return delays of datagrams over idle links, one link for each of `delays_ms`."""
    with Lab(kind, {str(ms): LinkParameters(delay_us=ms * 1000) for ms in delays_ms}) as lab:
        stampers = {ms: Stamper(lab.udp(str(ms))) for ms in delays_ms}
        timer_us = send_steadily(list(stampers.values()), 200, 0.005)
        for stamper in stampers.values():
            stamper.collect_all()
        return {
            "timer_late_us": median(timer_us),
            "links": [_observed(stamper) for stamper in stampers.values()],
        }


def jitter(
    kind: str,
    delay_ms: int,
    jitter_ms: int,
    reorder: bool,
    distribution: str = "uniform",
    correlation: float = 0.0,
) -> dict[str, Any]:
    """Return delays with jitter, one datagram every millisecond."""
    parameters = LinkParameters(
        delay_us=delay_ms * 1000,
        jitter_us=jitter_ms * 1000,
        reorder=reorder,
        jitter_quantiles=named_quantiles(distribution),
        jitter_correlation=correlation,
    )
    with Lab(kind, {"link": parameters}) as lab:
        stamper = Stamper(lab.udp("link"))
        timer_us = send_steadily([stamper], 500, 0.001)
        stamper.collect_all()
        return _observed(stamper) | {"timer_late_us": median(timer_us)}


def _frames_sent(stamper: Stamper, frames: int, per_frame: int, *, every: int) -> Iterator[None]:
    """Send frames of `per_frame` datagrams; yield whenever a multiple of `every` datagrams was sent."""
    for _ in range(frames):
        stamper.send() if per_frame == 1 else stamper.send_offloaded(per_frame)
        if len(stamper.sent) % every == 0:
            yield


def datagram_loss(
    kind: str, loss: float, per_frame: int, frames: int, burst: int | None = None
) -> dict[str, Any]:
    """Send datagrams over a lossy link, `per_frame` of them in one offloaded frame."""
    with Lab(kind, {"link": LinkParameters(loss=loss, loss_burst_packets=burst)}) as lab:
        stamper = Stamper(lab.udp("link"))
        for _ in _frames_sent(stamper, frames, per_frame, every=40):
            if not stamper.collect_until_last(LOST_S):
                lab.settle("link", stamper)
        lab.settle("link", stamper)
        return _observed(stamper) | {"counters": _counters(lab)}


def altered(kind: str, duplicate: float, corrupt: float, per_frame: int, frames: int) -> dict[str, Any]:
    """Send datagrams over a link that duplicates and damages them, `per_frame` of them in one offloaded
    frame.
    """
    with Lab(kind, {"link": LinkParameters(duplicate=duplicate, corrupt=corrupt)}) as lab:
        stamper = Stamper(lab.udp("link"))
        for _ in _frames_sent(stamper, frames, per_frame, every=200):
            stamper.collect_until_quiet(LOST_S)
        stamper.collect_until_quiet(QUIET_S)
        return _observed(stamper)


def one_way(kind: str, towards: str, delay_ms: int) -> dict[str, Any]:
    """Send datagrams and bulk transfers in both directions over a link with one shaped direction."""
    with Lab(kind, {"link": {LinkDirectionName(towards): LinkParameters(delay_us=delay_ms * 1000)}}) as lab:
        a, b = lab.udp("link")
        b.connect(a.getsockname())
        stampers = {LinkDirectionName.FORWARD: Stamper((a, b)), LinkDirectionName.BACKWARD: Stamper((b, a))}
        send_steadily(list(stampers.values()), 100, 0.002)
        for stamper in stampers.values():
            stamper.collect_all()
        one, other = lab.tcp("link")
        intact = [transfer(pair, 0.5, start_s=0).intact for pair in ((one, other), (other, one))]
        return {
            "delays_us": {
                direction: [arrival.delay_us for arrival in stamper.arrivals]
                for direction, stamper in stampers.items()
            },
            "intact": intact,
            "counted": [direction for _, direction in lab.emulator.counters()],
        }


def tcp(kind: str, parameters: dict[str, Any], seconds: float, offloads: bool) -> dict[str, Any]:
    """Run a bulk transfer."""
    backward = LinkParameters(delay_us=parameters.get("delay_us", 0))
    with Lab(
        kind,
        {
            "link": {
                LinkDirectionName.FORWARD: LinkParameters(**parameters),
                LinkDirectionName.BACKWARD: backward,
            }
        },
    ) as lab:
        if not offloads:
            lab.switch_offloads_off("link")
        done = transfer(lab.tcp("link"), seconds, start_s=seconds / 3)
        return {
            "goodput_bits_per_s": done.goodput_bits_per_s,
            "intact": done.intact,
            "segments_sent": done.segments_sent,
            "segments_received": done.segments_received,
            "counters": _counters(lab),
        }


def cut(kind: str, delay_ms: int) -> dict[str, Any]:
    """Send a datagram every millisecond; cut the link for 300 ms in the middle."""
    parameters = LinkParameters(delay_us=delay_ms * 1000)
    with Lab(kind, {"link": parameters}) as lab:
        stamper = Stamper(lab.udp("link"))
        applied = []
        for blackhole in (True, False):
            send_steadily([stamper], 300, 0.001)
            applied.append(
                lab.emulator.change("link", LinkDirectionName.FORWARD, parameters, blackhole=blackhole)
            )
        send_steadily([stamper], 300, 0.001)
        stamper.collect_until_last()
        return _observed(stamper) | _changes(applied) | {"counters": _counters(lab)}


def one_way_cut(kind: str) -> dict[str, Any]:
    """Return whether datagrams pass in each direction while the forward direction is cut."""
    parameters = LinkParameters(delay_us=1000)
    with Lab(kind, {"link": parameters}) as lab:
        sender, receiver = lab.udp("link")
        lab.emulator.change("link", LinkDirectionName.FORWARD, parameters, blackhole=True)
        receiver.connect(sender.getsockname())
        forward, backward = Stamper((sender, receiver)), Stamper((receiver, sender))
        send_steadily([forward, backward], 20, 0.001)
        backward.collect_all()
        lab.settle("link", forward)
        return {"forward": len(forward.arrivals), "backward": len(backward.arrivals)}


def black_hole(kind: str, mtu_bytes: int, sizes: list[int], own: bool) -> dict[str, Any]:
    """Return which datagrams of these sizes pass if the link drops larger packets.

    own: whether the link does so from its start, or gets the MTU by a change.
    """
    smaller = LinkParameters(delay_us=1000, mtu_bytes=mtu_bytes, icmp_dropped=own)
    first = smaller if own else LinkParameters(delay_us=1000)
    with Lab(kind, {str(size): first for size in sizes}) as lab:
        passed = {}
        for size in sizes:
            link = str(size)
            for direction in () if own else LinkDirectionName:
                lab.emulator.change(link, direction, smaller, blackhole=False)
            stamper = Stamper(lab.udp(link), size=size)
            send_steadily([stamper], 20, 0.001)
            stamper.collect_until_quiet(QUIET_S)
            passed[size] = len(stamper.arrivals)
        return {"passed": passed}


def overflow(kind: str, queue: int, burst: int) -> dict[str, Any]:
    """Send a burst of 1000-byte datagrams into a slow link with a short queue."""
    with Lab(kind, {"link": LinkParameters(rate_bits_per_s=1_000_000, queue_packets=queue)}) as lab:
        stamper = Stamper(lab.udp("link"), size=1000)
        for _ in range(burst):
            stamper.send()
        lab.settle("link", stamper)
        return _observed(stamper) | {"counters": _counters(lab)}


def changing_delay(kind: str, delays_ms: list[int]) -> dict[str, Any]:
    """Send a datagram every 2 ms while the delay takes several values in turn."""
    with Lab(kind, {"link": LinkParameters(delay_us=delays_ms[0] * 1000)}) as lab:
        stamper = Stamper(lab.udp("link"))
        applied, timer_us = [], []
        for ms in delays_ms:
            parameters = LinkParameters(delay_us=ms * 1000)
            applied.append(
                lab.emulator.change("link", LinkDirectionName.FORWARD, parameters, blackhole=False)
            )
            timer_us += send_steadily([stamper], 150, 0.002)
        stamper.collect_all()
        return _observed(stamper) | _changes(applied) | {"timer_late_us": median(timer_us)}


def traced(kind: str, rates: list[int], delays_us: list[int]) -> dict[str, Any]:
    """Send datagrams of 1000 bytes every 4 ms over a link that follows a trace from its beginning."""
    parameters = LinkParameters(
        delay_us=max(delays_us),
        rate_bits_per_s=1_000_000,
        queue_packets=1_000,
        rate_traced=True,
        delay_traced=True,
    )
    trace = LinkTrace(trace_steps(rates), trace_steps(delays_us))
    with Lab(kind, {"link": parameters}, {"link": trace}) as lab:
        stamper = Stamper(lab.udp("link"), size=TRACED_BYTES)
        zero_ns = time.time_ns() + 50 * MS
        lab.emulator.begin_traces(zero_ns)
        time.sleep(0.06)  # until it has begun
        timer_us = send_steadily([stamper], 650, 0.004)  # two turns of the trace
        stamper.collect_all()
        found = {"zero_ns": zero_ns, "timer_late_us": median(timer_us), "failure": lab.emulator.failure()}
        late_us = lab.emulator.counters()[
            "link", LinkDirectionName.FORWARD
        ].lateness_p99_us  # of few steps: the most
        found["steps_late_us"] = late_us or 0 if kind == "netem" else 0
        return _observed(stamper) | found


def trace_steps(values: list[int]) -> TraceSteps:
    """Return a trace of these steps."""
    return TraceSteps("link.trace", "", len(values) * STEP_US, tuple(values))


def _observed(stamper: Stamper) -> dict[str, Any]:
    return {"sent_ns": stamper.sent, "arrivals": stamper.arrivals}


def _changes(applied: list[Applied]) -> dict[str, Any]:
    return {
        "requested_ns": [change.requested_ns for change in applied],
        "applied_ns": [change.applied_ns for change in applied],
    }


def _counters(lab: Lab) -> dict[str, int]:
    """Return the counters of the forward direction of link "link"."""
    row = lab.emulator.counters()["link", LinkDirectionName.FORWARD]
    return {
        "frames": row.frames,
        "bytes": row.bytes,
        "dropped_loss": row.dropped_loss,
        "dropped_queue": row.dropped_queue,
        "dropped_blackhole": row.dropped_blackhole,
        "dropped_kernel": row.dropped_kernel,
    }
