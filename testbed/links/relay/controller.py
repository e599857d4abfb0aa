"""The testbed's end of the relay: `RelayEmulator` starts the process, sends it orders and detects its end.

The kernel forwards a direction that is emulated on another machine unaltered (`one_way_lines`). Both ends of
such a link are ports of a bridge that has no forwarding table and floods towards one of them only. The bridge
does not forward frames of the other direction: the relay receives them from a packet socket at the port,
which sees a frame before its bridge does. So each frame of a link between machines passes one relay, on the
machine that sends it.

Sources: ip-link(8), packet(7), linux/net/core/dev.c (`__netif_receive_skb_core`).
"""

import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import testbed
from experiments.child_python import python_command
from experiments.planned.changes import LinkDirectionName
from experiments.records.observations import LinkCounters
from testbed.batches import run_batch
from testbed.errors import MachineError, TestbedError
from testbed.links.emulator import Applied, SelectedPackets
from testbed.links.relay.control_socket import ControlSocket
from testbed.links.wiring import LinkWiring
from topologies.link_parameters import LinkParameters

START_S_MAX = 60.0  # hundreds of rings have to be allocated
ANSWER_S_MAX = 20.0
STOP_S_MAX = 2.0
CHECKOUT = Path(testbed.__file__).parent.parent


class RelayEmulator:
    """Emulates all links of a run in one relay process. The methods may be called from several threads."""

    kind = "relay"

    def __init__(self, seed: int) -> None:
        """`seed` makes losses and jitter repeatable, per link and direction."""
        self._seed = seed
        self._process: subprocess.Popen[str] | None = None
        self._control: ControlSocket | None = None
        self._lock = threading.Lock()
        self._stopped = False
        self._wirings: Sequence[LinkWiring] = ()
        self._error_line = ""
        self.scheduling = ""  # the scheduling that the process was granted

    def start(self, wirings: Sequence[LinkWiring]) -> None:
        """Start the process in the caller's network namespace and wait until it forwards on every link."""
        run_batch("ip", one_way_lines(wirings), doing="connecting the links to other machines")
        self._wirings = wirings
        ours, theirs = socket.socketpair()
        ours.settimeout(START_S_MAX)
        with theirs:
            self._process = subprocess.Popen(
                python_command("testbed.links.relay", str(theirs.fileno()), options=["-S"]),
                pass_fds=[theirs.fileno()],
                env={**os.environ, "PYTHONPATH": str(CHECKOUT)},
                stdin=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,  # so that Ctrl-C does not reach it
            )
        self._control = ControlSocket(ours)
        try:
            answer = self._order(
                {"do": "start", "seed": self._seed, "links": [_to_json(link) for link in wirings]}
            )
        except TestbedError as error:
            self.stop()
            raise MachineError(f"the links' relay did not start: {error}") from error
        self.scheduling = answer["scheduling"]
        ours.settimeout(ANSWER_S_MAX)

    def change(
        self,
        link: str,
        direction: LinkDirectionName,
        parameters: LinkParameters,
        *,
        blackhole: bool,
        selects: SelectedPackets | None = None,
    ) -> Applied:
        """See `LinkEmulator`."""
        requested_ns = time.time_ns()
        fields = {
            "link": link,
            "direction": direction.value,
            "parameters": asdict(parameters),
            "blackhole": blackhole,
            "selects": None if selects is None else asdict(selects),
        }
        answer = self._order({"do": "change", "requested_ns": requested_ns, **fields})
        return Applied(requested_ns, answer["applied_ns"])

    def begin_traces(self, zero_ns: int) -> None:
        """See `LinkEmulator`."""
        if any(wiring.traces for wiring in self._wirings):
            self._order({"do": "begin", "zero_ns": zero_ns})

    def counters(self) -> Mapping[tuple[str, LinkDirectionName], LinkCounters]:
        """See `LinkEmulator`."""
        rows = self._order({"do": "counters"})["rows"]
        return {
            (row.pop("link"), LinkDirectionName(row.pop("direction"))): LinkCounters(**row) for row in rows
        }

    def failure(self) -> str | None:
        """Return why the relay no longer works, or None, also after `stop`."""
        if self._process is None or self._stopped:
            return None
        code = self._process.poll()
        if code is None:
            state = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(") ")[2][0]  # proc(5)
            return "the links' relay was stopped by a signal" if state == "T" else None
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"ended with {code}"
        return f"the links' relay {how}{self._last_error_line()}"

    @property
    def pid(self) -> int | None:
        """The process id of the relay while it runs, else None."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def _last_error_line(self) -> str:
        """Return the last line of its standard error, stored because it can be read only once."""
        if (
            not self._error_line
            and self._process
            and self._process.stderr
            and not self._process.stderr.closed
        ):
            lines = self._process.stderr.read().strip().splitlines()
            self._error_line = f": {lines[-1]}" if lines else ""
        return self._error_line

    def stop(self) -> None:
        """See `LinkEmulator`."""
        self._stopped = True
        if self._control is not None:
            self._control.close()  # the relay ends with its control socket
        if self._process is not None:
            try:
                self._process.wait(STOP_S_MAX)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()  # the kernel closes rings one by one: 20 ms each
            if self._process.stderr is not None:
                self._process.stderr.close()
        wirings, self._wirings = self._wirings, ()
        run_batch("ip", remove_lines(wirings), doing="disconnecting the links to other machines")

    def _order(self, order: dict[str, Any]) -> dict[str, Any]:
        """Send one order and return its answer. Raises TestbedError."""
        doing = f"the relay's order {order['do']!r}"
        if self._control is None or self._stopped:
            raise TestbedError(f"{doing} failed: the relay is not running")
        with self._lock:
            try:
                self._control.send(order)
                answer = self._control.receive()
            except (OSError, ValueError) as error:
                raise TestbedError(f"{doing} failed: {self.failure() or error}") from error
        if answer is None:
            raise TestbedError(f"{doing} failed: {self.failure() or 'it closed its control socket'}")
        if "error" in answer:
            raise TestbedError(f"{doing} failed: {answer['error']}")
        return answer


def _to_json(link: LinkWiring) -> dict[str, Any]:
    return {
        "name": link.name,
        "a": link.a_interface,
        "b": link.b_interface,
        "lan": link.lan,
        "mac": link.mac,
        "parameters": {direction: asdict(parameters) for direction, parameters in link.parameters.items()},
        "traces": {direction: asdict(trace) for direction, trace in link.traces.items()},
    }


def one_way_lines(wirings: Sequence[LinkWiring]) -> list[str]:
    """Return the `ip -batch` lines that create bridges for links with a direction emulated elsewhere."""
    lines = []
    for name, wiring in _bridges(wirings):
        lines.append(f"link add {name} type bridge stp_state 0 mcast_snooping 0")
        lines.append(f"link set {name} up")
        to_a, to_b = (
            LinkDirectionName.BACKWARD not in wiring.parameters,
            LinkDirectionName.FORWARD not in wiring.parameters,
        )
        for port, is_open in ((wiring.a_interface, to_a), (wiring.b_interface, to_b)):
            flood = "on" if is_open else "off"
            lines.append(f"link set {port} up master {name}")
            lines.append(
                f"link set {port} type bridge_slave learning off"
                f" flood {flood} mcast_flood {flood} bcast_flood {flood}"
            )
    return lines


def remove_lines(wirings: Sequence[LinkWiring]) -> list[str]:
    """Return the `ip -batch` lines that remove what `one_way_lines` created."""
    return [f"link del {name}" for name, _ in _bridges(wirings)]


def _bridges(wirings: Sequence[LinkWiring]) -> Iterator[tuple[str, LinkWiring]]:
    for number, wiring in enumerate(wirings):
        if len(wiring.parameters) < len(LinkDirectionName):
            yield f"ow{number}", wiring
