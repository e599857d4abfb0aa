"""How exact and how fast relay links are, as an ordinary user: precision, rate, throughput, cost.

Each measurement runs in a sandbox of its own. A link's lateness stands beside that of a plain timer from the
same seconds, because both depend on how busy the machine is.
"""

import os
import selectors
import socket
import struct
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from random import Random
from statistics import quantiles
from typing import Any

from experiments.planned.changes import LinkDirectionName
from testbed.links.relay.controller import RelayEmulator
from tests.bench.rows import Row, row
from tests.testbed.links.lab import Lab
from tests.testbed.links.probes import BLOCK, BLOCK_BYTES, Stamper, send_steadily, transfer
from tests.testbed.sandboxed import sandboxed_as_ordinary_user
from topologies.link_parameters import LinkParameters

DELAY_MS = 15
THROUGHPUT_DELAY_MS = 20
GIGABIT = 1_000_000_000
HEADERS_SHARE = 1448 / 1514
STREAMS = 4
STREAMS_S = 3.0
START_S = 1.0
TCPI_BYTES_RECEIVED = 128
LINKS, FRAME_BYTES = 22, 500
MANY_PER_S, FEW_PER_S = 31_000, 5_000  # frames, over all links
LOADS = ((MANY_PER_S, 5000), (FEW_PER_S, 5000), (FEW_PER_S, 100))  # with the links' delay in microseconds


def measure() -> list[Row]:
    """Rows of name, value, unit and what was asked."""
    with tempfile.TemporaryDirectory() as home:
        late = sandboxed_as_ordinary_user(precision, home=Path(home))
        rate = sandboxed_as_ordinary_user(gigabit, home=Path(home))
        bits_per_s = sandboxed_as_ordinary_user(throughput, home=Path(home))
        costs = [sandboxed_as_ordinary_user(cost, *load, home=Path(home)) for load in LOADS]
    asked_us = {"link": {50: 300, 99: 2000}, "timer": {}}
    rows = [
        row(
            (f"{what} lateness, p{percent}" + (f", {DELAY_MS} ms idle" if what == "link" else ", plain")),
            late[what][str(percent)],
            "us",
            asked_us[what].get(percent),
        )
        for what in ("link", "timer")
        for percent in (50, 99)
    ]
    mb = f"TCP over {THROUGHPUT_DELAY_MS} ms without a limit, {STREAMS} streams"
    return [
        *rows,
        row("goodput / rate at 1 Gbit/s", rate, "", "0.97 to 1.03"),
        row(mb, bits_per_s / 1e6, "Mbit/s", 1000),
        row(
            f"{costs[0]['frames_per_s']:,.0f} frames/s over {LINKS} links",
            costs[0]["share"],
            "of a core",
            0.2,
        ),
        *[
            row(
                f"a frame, of {each['frames_per_s']:,.0f} a second over {delay_us} us" + what,
                each[part] / each["frames_per_s"] * 1e6,
                "us of the relay",
            )
            for (_, delay_us), each in zip(LOADS, costs, strict=True)
            for part, what in (("share", ""), ("kernel_share", ", in the kernel"))
        ],
    ]


def precision() -> dict[str, dict[int, float]]:
    """Percentiles of how late datagrams came over an idle link, and of how late a plain timer was."""
    with Lab("relay", {"link": LinkParameters(delay_us=DELAY_MS * 1000)}) as lab:
        stamper = Stamper(lab.udp("link"))
        timer_us = send_steadily([stamper], 2000, 0.001)
        stamper.collect_until_quiet(0.2)
        link_us = [arrival.delay_us - DELAY_MS * 1000 for arrival in stamper.arrivals]
        return {"link": _percentiles(link_us), "timer": _percentiles(timer_us)}


def _percentiles(values: Sequence[float]) -> dict[int, float]:
    cuts = quantiles(values, n=100)
    return {50: cuts[49], 99: cuts[98]}


def gigabit() -> float:
    """TCP's goodput over a link of 1 Gbit/s, as a share of what the rate leaves for payload."""
    parameters = LinkParameters(delay_us=5000, rate_bits_per_s=GIGABIT)
    with Lab(
        "relay",
        {
            "link": {
                LinkDirectionName.FORWARD: parameters,
                LinkDirectionName.BACKWARD: LinkParameters(delay_us=5000),
            }
        },
    ) as lab:
        done = transfer(lab.tcp("link"), STREAMS_S, start_s=START_S)
        return done.goodput_bits_per_s / (GIGABIT * HEADERS_SHARE)


def throughput() -> float:
    """Bits a second that TCP carries over a link without a limit; the windows are what the machine gives."""
    with Lab("relay", {"link": LinkParameters(delay_us=THROUGHPUT_DELAY_MS * 1000)}) as lab:
        pairs = [lab.tcp("link", stream) for stream in range(STREAMS)]
        children = [_forked(_send_forever, sender) for sender, _ in pairs]
        children += [_forked(_receive_forever, receiver) for _, receiver in pairs]
        try:
            time.sleep(START_S)
            begin, before = time.monotonic(), sum(_bytes_received(receiver) for _, receiver in pairs)
            time.sleep(STREAMS_S)
            after = sum(_bytes_received(receiver) for _, receiver in pairs)
            return (after - before) * 8 / (time.monotonic() - begin)
        finally:
            _end(children)


def cost(frames_per_s: int, delay_us: int) -> dict[str, float]:
    """Measure the relay's share of a core for small frames over many links."""
    parameters = LinkParameters(delay_us=delay_us, rate_bits_per_s=GIGABIT)
    with Lab("relay", {str(n): parameters for n in range(LINKS)}) as lab:
        pairs = [lab.udp(str(n)) for n in range(LINKS)]
        assert isinstance(lab.emulator, RelayEmulator)
        children = [
            _forked(partial(_send_frames, frames_per_s), [sender for sender, _ in pairs]),
            _forked(_receive_frames, [receiver for _, receiver in pairs]),
        ]
        try:
            time.sleep(START_S)
            begin, before, frames = time.monotonic(), _cpu_s(lab.emulator.pid), _frames(lab)
            time.sleep(STREAMS_S)
            seconds = time.monotonic() - begin
            user_s, kernel_s = (
                after - at for after, at in zip(_cpu_s(lab.emulator.pid), before, strict=True)
            )
            return {
                "share": (user_s + kernel_s) / seconds,
                "kernel_share": kernel_s / seconds,
                "frames_per_s": (_frames(lab) - frames) / seconds,
            }
        finally:
            _end(children)


def _frames(lab: Lab) -> int:
    return sum(
        row.frames for (_, way), row in lab.emulator.counters().items() if way is LinkDirectionName.FORWARD
    )


def _cpu_s(pid: int | None) -> tuple[float, float]:
    """Processor seconds of a process, its own and the kernel's."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    return int(fields[11]) / ticks_per_s, int(fields[12]) / ticks_per_s


def _send_frames(frames_per_s: int, senders: Sequence[socket.socket]) -> None:
    """At random times: nodes do not send in step."""
    payload, sent, begin, random = bytes(FRAME_BYTES), 0, time.monotonic(), Random(1)
    while True:
        while sent < (time.monotonic() - begin) * frames_per_s:
            senders[sent % LINKS].send(payload)
            sent += 1
        time.sleep(random.uniform(0, 2 / frames_per_s) if frames_per_s < MANY_PER_S else 0.001)


def _receive_frames(receivers: Sequence[socket.socket]) -> None:
    with selectors.DefaultSelector() as selector:
        for receiver in receivers:
            selector.register(receiver, selectors.EVENT_READ)
        while True:
            for key, _ in selector.select():
                os.read(key.fd, FRAME_BYTES)


def _send_forever(sender: socket.socket) -> None:
    while True:
        sender.sendall(BLOCK)


def _receive_forever(receiver: socket.socket) -> None:
    buffer = bytearray(BLOCK_BYTES)
    while True:
        receiver.recv_into(buffer)


def _bytes_received(receiver: socket.socket) -> int:
    info = receiver.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256)
    return int(struct.unpack_from("=Q", info, TCPI_BYTES_RECEIVED)[0])


def _forked(work: Callable[[Any], None], sockets: Any) -> int:
    """Fork a child that works until it is killed."""
    if (child := os.fork()) == 0:
        try:
            work(sockets)
        finally:
            os._exit(1)
    return child


def _end(children: Sequence[int]) -> None:
    for child in children:
        os.kill(child, 9)
        os.waitpid(child, 0)
