"""The `ip` and `tc` commands by which netem emulates links. Pure; nothing is executed here.

An emulated link, for frames from a to b (the other direction is its mirror image):

    a_interface - bridge - near = far - bridge - b_interface
                            |                        |
                     netem: delay, jitter     netem: loss, rate, queue

- `near = far` is a veth pair. On a link with loss, a rate or a queue limit it takes no offloaded frames
  (gso_max_segs 1): the kernel cuts them up on their way through it, whatever the hosts' own offloads are, and
  so loss, rate and queue work on MTU-sized segments. The delay stands before it, the rest behind.
- Two netems rather than one: netem's queue also holds what is in flight, so with one of them a limit for the
  queue would cap a long link instead, and the more so the smaller the packets are.
- The rate is netem's own rather than TBF's or HTB's: it computes each segment's time from the one before, so
  it needs no burst, is exact with coarse timers, and one command changes it together with the rest.
- A netem with a rate never lets a packet leave before an earlier one. So where jitter must not reorder, the
  delay has a rate, too, that is too high to matter.
- A blackhole loses everything at both stages, so that also what is in flight is lost when its delay is over.
  What waits for the rate, and what a short cut leaves in flight, is dropped by *replacing* the netem under
  another handle: the kernel then drops what the old one holds.
- A link that follows a trace is changed at each step. What waits keeps the times it was given. netem knows no
  rate of nothing: in a pause what comes is held until its end, and then leaves at the rate that follows.

Sources: tc-netem(8), tc(8), ip-link(8), linux/net/sched/sch_netem.c.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from experiments.planned.changes import Direction
from testbed.links.wiring import LinkWiring
from topologies.link_parameters import LinkParameters, queue_limit_packets
from topologies.link_trace import LinkTrace

IN_FLIGHT_PACKETS_MAX = 1_000_000
"""What a delay may hold: 150 ms of full-sized segments at 80 Gbit/s, or of 200-byte ones at 10 Gbit/s."""

ORDER_KEEPING_RATE_BITS_PER_S = 1_000_000_000_000
OFFLOADED_SEGMENTS_MAX = 65_535
MTU_BYTES_MAX = 65_535


@dataclass(frozen=True, slots=True)
class Stages:
    """The interfaces whose queueing disciplines make one direction of a link."""

    delay: str
    limit: str


@dataclass(frozen=True, slots=True)
class NetemLink:
    """The names of the interfaces that emulate one link."""

    wiring: LinkWiring
    near: str
    far: str
    near_bridge: str
    far_bridge: str

    def stages(self, direction: Direction) -> Stages:
        """The interfaces of the direction's two netems."""
        if direction is Direction.FORWARD:
            return Stages(self.near, self.wiring.b_interface)
        return Stages(self.far, self.wiring.a_interface)


def netem_link(number: int, wiring: LinkWiring) -> NetemLink:
    """Name a link's interfaces by a number, because an interface's name has at most 15 characters."""
    return NetemLink(wiring, f"nx{number}", f"ny{number}", f"na{number}", f"nb{number}")


def is_limited(parameters: LinkParameters) -> bool:
    """Whether loss, rate or queue act on single segments, so that offloaded frames must be cut up."""
    return parameters.loss > 0 or parameters.rate_bits_per_s is not None


def wire_lines(link: NetemLink) -> list[str]:
    """The `ip -batch` lines that create bridges and veth pair, and join them."""
    wiring = link.wiring
    size = f"mtu {MTU_BYTES_MAX} numtxqueues 1 numrxqueues 1"
    lines = [f"link add {link.near} {size} type veth peer name {link.far} {size}"]
    sides = (
        (link.near_bridge, wiring.a_interface, link.near),
        (link.far_bridge, wiring.b_interface, link.far),
    )
    for bridge, outer, inner in sides:
        lines.append(f"link add {bridge} type bridge stp_state 0 mcast_snooping 0")
        lines.append(f"link set {bridge} up")
        for port in (outer, inner):
            lines.append(f"link set {port} up master {bridge}")
            # Between two ports there is nothing to learn.
            lines.append(f"link set {port} type bridge_slave learning off flood on")
    for direction, parameters in wiring.parameters.items():
        lines += offload_lines(link.stages(direction), parameters)
    return lines


def unwire_lines(emulator: Sequence[NetemLink]) -> list[str]:
    """The `ip -force -batch` lines that remove what `wire_lines` created."""
    return [
        f"link del {name}" for link in emulator for name in (link.near, link.near_bridge, link.far_bridge)
    ]


def offload_lines(stages: Stages, parameters: LinkParameters) -> list[str]:
    """The `ip -batch` lines that make the kernel cut up offloaded frames behind the delay, or pass them
    whole.
    """
    segments = 1 if is_limited(parameters) else OFFLOADED_SEGMENTS_MAX
    return [f"link set {stages.delay} gso_max_segs {segments}"]


def limit_line(
    action: str,
    stages: Stages,
    handle: int,
    parameters: LinkParameters,
    *,
    blackhole: bool = False,
    hold_us: int = 0,
    seed: int | None = None,
) -> str:
    """The `tc -batch` line for the stage with loss, rate and queue.

    action: "add" creates it; "change" changes it in place; "replace" with a new handle creates a new one and
    drops what the old one holds. hold_us: for how long at least a segment waits. seed: of its losses, where
    tc and kernel support seeds.
    """
    options = limit_options(parameters, blackhole=blackhole, hold_us=hold_us)
    return f"qdisc {action} dev {stages.limit} root handle {handle}: netem {options}{_seeded(seed)}"


def delay_line(
    action: str,
    stages: Stages,
    handle: int,
    parameters: LinkParameters,
    *,
    blackhole: bool = False,
    seed: int | None = None,
) -> str:
    """The `tc -batch` line for the stage with delay and jitter; `action` and `seed` as in `limit_line`."""
    options = delay_options(parameters, loss=1.0 if blackhole else 0.0)
    return f"qdisc {action} dev {stages.delay} root handle {handle}: netem {options}{_seeded(seed)}"


def stage_seed(seed: int, interface: str, changes: int) -> int:
    """A separate seed for each stage and each change of it."""
    return crc32(f"{seed}/{interface}/{changes}".encode())


def _seeded(seed: int | None) -> str:
    return "" if seed is None else f" seed {seed}"


def delay_options(parameters: LinkParameters, *, loss: float) -> str:
    """netem's options for delay and jitter, always all of them: a change keeps what it does not name."""
    keeps_order = parameters.jitter_us == 0 or not parameters.reorder
    rate = ORDER_KEEPING_RATE_BITS_PER_S if keeps_order else 0
    delay = f"delay {parameters.delay_us}us {parameters.jitter_us}us"
    return f"limit {IN_FLIGHT_PACKETS_MAX} {delay} rate {rate}bit loss random {_percent(loss)}"


def limit_options(parameters: LinkParameters, *, blackhole: bool = False, hold_us: int = 0) -> str:
    """netem's options for loss, rate and queue."""
    # One more than may wait: netem also counts the segment that is being sent.
    waiting = queue_limit_packets(parameters)
    limit = IN_FLIGHT_PACKETS_MAX if waiting is None else waiting + 1
    rate = parameters.rate_bits_per_s or 0
    return f"limit {limit} delay {hold_us}us 0us rate {rate}bit loss {_loss(parameters, blackhole=blackhole)}"


def _loss(parameters: LinkParameters, *, blackhole: bool) -> str:
    if blackhole:
        return f"random {_percent(1.0)}"
    chances = parameters.loss_chances
    if chances is None:
        return f"random {_percent(parameters.loss)}"
    return "gemodel " + " ".join(map(_percent, chances))


def _percent(fraction: float) -> str:
    return f"{fraction * 100:.9g}%"


def in_step(parameters: LinkParameters, trace: LinkTrace | None, since_us: int) -> tuple[LinkParameters, int]:
    """The parameters so long after the trace's beginning, and for how long a segment is held, in us."""
    held_us = 0
    if trace is None or since_us < 0:
        return parameters, held_us
    if parameters.delay_traced and trace.delay is not None:
        delay_us = trace.delay.values[trace.delay.number_at(since_us)]
        parameters = replace(parameters, delay_us=delay_us)
    if parameters.rate_traced and trace.rate is not None:
        rate, at_us = 0, since_us
        while not (rate := trace.rate.values[trace.rate.number_at(at_us)]):
            at_us = trace.rate.next_us(at_us)
        held_us = at_us - since_us
        parameters = replace(parameters, rate_bits_per_s=rate)
    return parameters, held_us


def next_step_us(trace: LinkTrace, since_us: int) -> int:
    """When the next step begins of a trace's rate or delay, after the trace's beginning."""
    if since_us < 0:
        return 0
    return min(steps.next_us(since_us) for steps in (trace.rate, trace.delay) if steps is not None)
