"""Three machines that execute one plan together, without SSH. Each is a network namespace with an interface
on one experiment bridge, and in it a namespace like a sandbox's with its share. Runs inside a sandbox.

`python -m tests.testbed.network.assigned_networks KIND NAME` is a machine, which creates its tunnels and has
a child (with `inside` as an argument) with the network. It answers requests from standard input on standard
output.
"""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from experiments.planned.changes import LinkDirectionName, LinkState
from experiments.planned.plan import Plan
from testbed.assignment import Assignment
from testbed.links.selection import select_emulator
from testbed.machines.inventory import Inventory, InventoryMachine, Shaping, Shipping, ShippingTime
from testbed.machines.placement import Placement, assignments
from testbed.network.network import Network
from testbed.tunnel import make_tunnels
from tests.testbed.network.observations import set_link, what_sending_says
from tests.testbed.network.plans import make_plan

PLAN: Plan = make_plan(2, 2)
"""r0 is on h0; of r1 the gateway and one host are on h1, the other host on h2."""
NAMES = ("h0", "h1", "h2")
START_TIMEOUT_S = 60.0
THIS = (sys.executable, "-m", "tests.testbed.network.assigned_networks")


def _machine(number: int) -> InventoryMachine:
    return InventoryMachine(
        name=NAMES[number], control="", port=None, user=None, key=None, host_key=None,
        experiment=f"10.10.1.{10 + number}", links={}, serves=(), takes=4, folder="/none",
    )  # fmt: skip


def all_assignments() -> dict[str, Assignment]:
    """Return each machine's assignment."""
    machines = [_machine(number) for number in range(3)]
    where = {"r0": machines[0], "r1": machines[1]}
    placement = Placement(
        {host.name: where[host.region] for host in PLAN.hosts} | {"r1-proxy-1": machines[2]}
    )
    shipping = Shipping(when=ShippingTime.END)
    inventory = Inventory("x", "x", tuple(machines), 0, Shaping.HOSTS, 4789, shipping)
    return assignments(PLAN, inventory, placement, 1)


def three_machines(kind: str) -> dict[str, Any]:
    """Return the observed traffic between them: as planned, cut, and healed."""
    _ip("link add exp type bridge", "link set exp up")
    processes = {name: _start(kind, name) for name in NAMES}
    try:
        for number, process in enumerate(processes.values()):
            _ip(f"link add x{number} mtu 1600 type veth peer name exp0 mtu 1600 netns {process.pid}")
            _ip(f"link set x{number} up master exp")
            inside = ["nsenter", f"--net=/proc/{process.pid}/ns/net", "--", "ip", "-batch", "-"]
            lines = f"address add 10.10.1.{10 + number}/24 dev exp0\nlink set exp0 up\nlink set lo up\n"
            subprocess.run(inside, input=lines, text=True, check=True)
        for process in processes.values():
            _say(process, {"do": "build"})
        for process in processes.values():
            assert _hear(process) == "up"
        seen: dict[str, Any] = {"rtt_us": _ask(processes["h0"], do="probe")}
        seen["across"] = _ask(processes["h0"], do="send", host="r0-proxy-0", to="10.1.0.3")
        seen["within"] = _ask(processes["h1"], do="send", host="r1-proxy-0", to="10.1.0.3")
        for name in ("h0", "h1"):
            _ask(processes[name], do="set", state="blackhole")
        seen["cut_rtt_us"] = _ask(processes["h0"], do="probe")
        seen["within_while_cut"] = _ask(processes["h2"], do="send", host="r1-proxy-1", to="10.1.0.2")
        for name in ("h0", "h1"):
            _ask(processes[name], do="set", state="up")
        seen["healed"] = _ask(processes["h0"], do="send", host="r0-proxy-0", to="10.1.0.3")
        return seen
    finally:
        for process in processes.values():
            process.kill()


def _ip(*lines: str) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


def _start(kind: str, name: str) -> subprocess.Popen[str]:
    """Start a machine and return when its namespace exists."""
    command = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--", *THIS, kind, name]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert _hear(process) == "there"
    return process


def _say(process: subprocess.Popen[str], message: dict[str, Any]) -> None:
    assert process.stdin is not None
    process.stdin.write(json.dumps(message) + "\n")
    process.stdin.flush()


def _hear(process: subprocess.Popen[str]) -> Any:
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def _ask(process: subprocess.Popen[str], **message: Any) -> Any:
    _say(process, message)
    return _hear(process)


def be_machine(kind: str, name: str) -> None:
    """Create the tunnels of the child that has the network; both have the same standard input and output."""
    _tell("there")
    sys.stdin.readline()
    inner = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "--mount", "--", *THIS]
    child = subprocess.Popen([*inner, kind, name, "inside"])
    own, deadline_s = Path("/proc/self/ns/net").readlink(), time.monotonic() + START_TIMEOUT_S
    while Path(f"/proc/{child.pid}/ns/net").readlink() == own:
        assert time.monotonic() < deadline_s
        time.sleep(0.01)
    make_tunnels(all_assignments()[name].tunnels, child.pid)
    child.wait()


def be_inside(kind: str, name: str) -> None:
    """Create the network, and answer requests."""
    subprocess.run(["mount", "-n", "-t", "sysfs", "sysfs", "/sys"], check=True)
    with Network(PLAN, select_emulator(kind, 1), all_assignments()[name]) as network:
        _tell("up")
        for line in sys.stdin:
            message = json.loads(line)
            match message["do"]:
                case "probe":
                    _tell([us for probe in network.probe("before") for us in probe.rtt_us])
                case "send":
                    _tell(what_sending_says(network, message["host"], message["to"]))
                case "set":
                    _set_here(network, name, LinkState(message["state"]))
                    _tell("done")


def _set_here(network: Network, name: str, state: LinkState) -> None:
    direction = LinkDirectionName.FORWARD if name == "h0" else LinkDirectionName.BACKWARD
    set_link(network, PLAN, "r0-r1", state, direction)


def _tell(answer: Any) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    (be_inside if sys.argv[3:] else be_machine)(*sys.argv[1:3])
