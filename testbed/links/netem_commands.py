"""The `ip` and `tc` commands that emulate links with netem. Pure: the module executes nothing.

An emulated link, for frames from a to b (the other direction is its mirror image):

    a_interface - bridge - near = far - bridge - b_interface
                            |                        |
                     netem: delay, jitter     netem: loss, duplicates,
                                                          corruption, rate, queue

- `near = far` is a veth pair. On a link with loss, duplicates, corruption, a rate or a queue limit it accepts
  no offloaded frames (gso_max_segs 1): the kernel segments them there, regardless of the hosts' own offloads,
  so all these work on MTU-sized segments. The delay is applied before the pair, the rest behind it.
- A link uses two netems because netem's queue also holds the packets in flight. With a single netem, a queue
  limit would cap the packets in flight on a long link; the smaller the packets, the lower the cap.
- The rate is netem's own rather than TBF's or HTB's: netem computes each segment's time from the previous
  one, so it needs no burst, is exact with coarse timers, and one command changes it together with the rest.
- A netem with a rate never lets a packet overtake an earlier one. If jitter must not reorder, the delay stage
  therefore also has a rate, which is too high to matter.
- A blackhole drops all packets at both stages, so packets in flight are dropped when their delay is over.
  Packets that wait for the rate, and packets that a short cut leaves in flight, are dropped by *replacing*
  the netem under another handle: the kernel then drops the packets of the old one.
- A link that follows a trace is changed at each step. Waiting packets keep their times. netem has no rate of
  zero: during a pause of the trace, packets are held until its end and then leave at the next rate.

Sources: tc-netem(8), tc(8), ip-link(8), linux/net/sched/sch_netem.c.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from zlib import crc32

from experiments.planned.changes import LinkDirectionName
from testbed.links.wiring import LinkWiring
from topologies.jitter import deviation
from topologies.link_parameters import LinkParameters, queue_limit_packets
from topologies.link_trace import LinkTrace

IN_FLIGHT_PACKETS_MAX = 1_000_000
"""Limit of a delay stage: 150 ms of full-sized segments at 80 Gbit/s, or of 200-byte ones at 10 Gbit/s."""

ORDER_KEEPING_RATE_BITS_PER_S = 1_000_000_000_000
OFFLOADED_SEGMENTS_MAX = 65_535
MTU_BYTES_MAX = 65_535
VLAN_TAG_BYTES = 4
TABLE_ROWS, TABLE_UNIT = 4_096, 8_192  # NETEM_DIST_SCALE of linux/pkt_sched.h


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

    def stages(self, direction: LinkDirectionName) -> Stages:
        """Return the interfaces of the direction's two netems."""
        if direction is LinkDirectionName.FORWARD:
            return Stages(self.near, self.wiring.b_interface)
        return Stages(self.far, self.wiring.a_interface)


def netem_link(number: int, wiring: LinkWiring) -> NetemLink:
    """Name a link's interfaces by a number, because interface names have at most 15 characters."""
    return NetemLink(wiring, f"nx{number}", f"ny{number}", f"na{number}", f"nb{number}")


def is_limited(parameters: LinkParameters) -> bool:
    """Return whether anything acts on single segments, so offloaded frames must be segmented."""
    shares = parameters.loss, parameters.duplicate, parameters.corrupt
    return any(shares) or parameters.rate_bits_per_s is not None or parameters.icmp_dropped


def wire_lines(link: NetemLink) -> list[str]:
    """Return the `ip -batch` lines that create bridges and veth pair, and join them."""
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
            # A bridge with two ports needs no learning.
            lines.append(f"link set {port} type bridge_slave learning off flood on")
    if any(parameters.icmp_dropped for parameters in wiring.parameters.values()):
        lines += mtu_lines(link, *wiring.parameters.values())
    for direction, parameters in wiring.parameters.items():
        lines += offload_lines(link.stages(direction), parameters)
    return lines


def unwire_lines(emulator: Sequence[NetemLink]) -> list[str]:
    """Return the `ip -force -batch` lines that remove what `wire_lines` created."""
    return [
        f"link del {name}" for link in emulator for name in (link.near, link.near_bridge, link.far_bridge)
    ]


def mtu_lines(link: NetemLink, *directions: LinkParameters) -> list[str]:
    """Return the `ip -batch` lines that make the veth pair drop larger packets silently, in both directions.

    The kernel also lets pass what is larger by a VLAN tag (`is_skb_forwardable`).
    """
    mtu_bytes = min(parameters.mtu_bytes for parameters in directions) - VLAN_TAG_BYTES
    return [f"link set {name} mtu {mtu_bytes}" for name in (link.near, link.far)]


def offload_lines(stages: Stages, parameters: LinkParameters) -> list[str]:
    """Return the `ip -batch` lines that make the kernel segment offloaded frames behind the delay or not."""
    segments = 1 if is_limited(parameters) else OFFLOADED_SEGMENTS_MAX
    return [f"link set {stages.delay} gso_max_segs {segments}"]


def netem_line(action: str, interface: str, handle: int, options: str, seed: int | None = None) -> str:
    """Return the `tc -batch` line for the netem of an interface.

    action: "add" creates it; "change" changes it in place; "replace" with a new handle creates a new one and
    drops the packets of the old one. seed: of its losses and jitter, if tc and kernel support seeds.
    """
    seeded = "" if seed is None else f" seed {seed}"
    return f"qdisc {action} dev {interface} root handle {handle}: netem {options}{seeded}"


def stage_seed(seed: int, interface: str, changes: int) -> int:
    """Return a separate seed for each stage and each change of it."""
    return crc32(f"{seed}/{interface}/{changes}".encode())


def delay_options(parameters: LinkParameters, *, blackhole: bool = False) -> str:
    """Return all netem options for delay and jitter: a change keeps options that it does not name."""
    keeps_order = parameters.jitter_us == 0 or not parameters.reorder
    rate = ORDER_KEEPING_RATE_BITS_PER_S if keeps_order else 0
    delay = f"delay {parameters.delay_us}us {parameters.jitter_us}us"
    if parameters.jitter_us:
        delay += f" distribution {table_name(parameters.jitter_quantiles)}"
    return f"limit {IN_FLIGHT_PACKETS_MAX} {delay} rate {rate}bit loss random {_percent(blackhole)}"


def table_name(quantiles: Sequence[float]) -> str:
    """Return the name of a distribution's table for tc."""
    return f"jitter-{crc32(repr(tuple(quantiles)).encode()):08x}"


def table_text(quantiles: Sequence[float]) -> str:
    """Return the table of a distribution: deviations in parts of the jitter, each as likely (tc-netem(8))."""
    draws = ((number + 0.5) / TABLE_ROWS for number in range(TABLE_ROWS))
    return "\n".join(f"{deviation(quantiles, drawn) * TABLE_UNIT:.0f}" for drawn in draws)


def limit_options(parameters: LinkParameters, *, blackhole: bool = False, hold_us: int = 0) -> str:
    """Return netem's options for the limit stage. hold_us: the minimum time that a segment waits.

    A cut has no duplicates: netem passes a packet once that is both lost and duplicated.
    """
    # One more than the queue limit: netem also counts the segment that is being sent.
    waiting = queue_limit_packets(parameters)
    limit = IN_FLIGHT_PACKETS_MAX if waiting is None else waiting + 1
    rate = parameters.rate_bits_per_s or 0
    twice, corrupt = (0 if blackhole else parameters.duplicate), parameters.corrupt
    shares = f"duplicate {_percent(twice)} corrupt {_percent(corrupt)}"
    loss = _loss(parameters, blackhole=blackhole)
    return f"limit {limit} delay {hold_us}us 0us rate {rate}bit {shares} loss {loss}"


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
    """Return the parameters at a time since the trace's start, and how long a segment is held, in us."""
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
    """Return when the next step of a trace's rate or delay begins, in us since the trace's start."""
    if since_us < 0:
        return 0
    return min(steps.next_us(since_us) for steps in (trace.rate, trace.delay) if steps is not None)
