"""Evaluation of the facts about a machine: each finding is good, a note, or prevents runs, with a remedy.

Pure. Each subject has one or several findings; their details are the cells of a table.
"""

import sysconfig
from collections import Counter
from collections.abc import Iterator

from testbed.doctor import DISK_BYTES_ADVISED, MEMORY_BYTES_ADVISED
from testbed.errors import TestbedError
from testbed.findings import Finding
from testbed.machines.facts import MACHINE_TOOLS, PROBE_BYTES, ClockReading, Echo, Facts
from testbed.machines.inventory import Inventory, InventoryMachine
from testbed.machines.placement import VXLAN_OVERHEAD_BYTES
from testbed.machines.run_folders import HELD, IN_USE, LEFT

MESSAGE_CHARACTERS_MAX = 200


def unreachable(machine: InventoryMachine, error: TestbedError) -> tuple[Finding, ...]:
    """Return the finding for a machine without facts, with the error that explains why."""
    return (Finding.missing("login", "no", str(error).removeprefix(f"{machine.name}: ")),)


def judge(
    inventory: Inventory,
    machine: InventoryMachine,
    facts: Facts,
    clock: ClockReading,
    sha256: str,
) -> tuple[Finding, ...]:
    """Return all findings about a machine. sha256: the name of our code's archive."""
    return (
        _login(machine),
        _python(facts),
        _tools(facts),
        *_links(inventory, facts),
        *_network(inventory, machine, facts),
        *_peers(inventory, facts),
        _clock(facts, clock),
        *_disk(machine, facts),
        _memory(facts),
        _code(facts, sha256),
        _runs(facts),
    )


def _login(machine: InventoryMachine) -> Finding:
    root = machine.user in {None, "root"}
    return Finding.good("login", (machine.user or "yes") if root else f"{machine.user}, sudo")


def _python(facts: Facts) -> Finding:
    ours = sysconfig.get_config_var("SOABI")
    if facts.abi == ours:
        return Finding.good("Python", facts.python)
    return Finding.missing(
        "Python",
        facts.python,
        f"its python3 is {facts.python} ({facts.abi or 'of an unknown kind'}), but the compiled modules that"
        f" come from here are for {ours}",
        "run Cutset with the Python and on the kind of processor that the machine has",
    )


def _tools(facts: Facts) -> Finding:
    if not facts.missing:
        return Finding.good("tools", "all")
    packages = sorted({MACHINE_TOOLS[tool] for tool in facts.missing})
    return Finding.missing(
        "tools",
        f"{len(facts.missing)} missing",
        f"not installed: {', '.join(facts.missing)}",
        f"apt-get install {' '.join(packages)}",
    )


def _links(inventory: Inventory, facts: Facts) -> Iterator[Finding]:
    if said := facts.attempts.namespaces:
        yield Finding.missing(
            "links",
            "none",
            f"cannot create namespaces [{_short(said)}]",
            "use the machine itself rather than a container, or one with --privileged",
        )
        return
    yield Finding.good("links", "relay" if facts.attempts.netem else "netem")
    if len(inventory.machines) > 1 and (said := facts.attempts.tunnel):
        yield Finding.missing(
            "links",
            "no tunnels",
            f"the kernel {facts.kernel} does not support VXLAN tunnels [{_short(said)}]",
            "modprobe vxlan, or use a kernel that has it (CONFIG_VXLAN)",
        )


def _network(inventory: Inventory, machine: InventoryMachine, facts: Facts) -> Iterator[Finding]:
    for address in machine.addresses:
        found = facts.addresses.get(address)
        if found is None:
            others = ", ".join(f"{own} ({at.interface})" for own, at in sorted(facts.addresses.items()))
            yield Finding.missing(
                "network",
                address,
                f"{address} is on none of its interfaces, which have {others or 'no address'}",
                f"correct the inventory ({inventory.file})",
            )
            continue
        cell = f"{address} {found.interface} {found.mtu}"
        if not found.up:
            yield Finding.missing(
                "network", cell, f"{found.interface} is down", f"ip link set {found.interface} up"
            )
        elif found.mtu < PROBE_BYTES:
            yield Finding.note(
                "network",
                cell,
                f"the MTU of {found.interface} is {found.mtu}: links between machines get"
                f" {found.mtu - VXLAN_OVERHEAD_BYTES} at most",
                f"ip link set {found.interface} mtu {PROBE_BYTES}, if all of that network can",
            )
        else:
            yield Finding.good("network", cell)
    if facts.port_holder:
        yield Finding.missing(
            "network",
            "port taken",
            f"UDP port {inventory.vxlan_port} is used by {facts.port_holder}",
            "stop it, or choose another port with `vxlan_port:` in the inventory",
        )


def _peers(inventory: Inventory, facts: Facts) -> Iterator[Finding]:
    if not facts.echoes:
        return
    name = {address: machine.name for machine in inventory.machines for address in machine.addresses}
    silent = [echo for echo in facts.echoes if echo.small_s is None]
    short = [echo for echo in facts.echoes if echo.small_s is not None and echo.large_s is None]
    cell = _reached(facts.echoes)
    if silent:
        yield Finding.missing(
            "peers",
            cell,
            f"no answer in the experiment network from {_named(silent, name)}",
            "check that they are up and in the same network, and that no firewall drops ICMP",
        )
    if short:
        sizes = sorted({min(PROBE_BYTES, facts.addresses[echo.own].mtu) for echo in short})
        size = " or ".join(map(str, sizes))
        yield Finding.missing(
            "peers",
            cell,
            f"no answer to packets of {size} bytes from {_named(short, name)}, but to small ones",
            "set the interfaces' MTU to that of the network between them",
        )
    if not silent and not short:
        yield Finding.good("peers", cell)


def _reached(echoes: tuple[Echo, ...]) -> str:
    times = sorted(echo.small_s for echo in echoes if echo.small_s is not None)
    reached = f"{len(times)}/{len(echoes)}"
    return f"{reached} {times[-1] * 1e3:.1f} ms" if times else reached


def _named(echoes: list[Echo], name: dict[str, str]) -> str:
    return ", ".join(f"{name.get(echo.peer, '?')} ({echo.peer})" for echo in echoes)


def _clock(facts: Facts, clock: ClockReading) -> Finding:
    offset = f"{clock.offset_ns / 1e6:+z.1f}"
    cell = f"{'0.0' if offset == '+0.0' else offset} ±{clock.error_ns / 1e6:.1f} ms"
    if facts.synchronised is False:
        return Finding.note(
            "clock",
            cell,
            "the kernel reports its clock as unsynchronised",
            "apt-get install chrony",
        )
    return Finding.good("clock", cell)


def _disk(machine: InventoryMachine, facts: Facts) -> Iterator[Finding]:
    cell = f"{facts.folder.free_bytes / 1e9:.0f} GB"
    if facts.folder.problem:
        yield Finding.missing("disk", cell, facts.folder.problem, "name another `folder:` in the inventory")
    elif facts.folder.free_bytes < DISK_BYTES_ADVISED:
        yield Finding.note(
            "disk",
            cell,
            f"{cell} are free for {machine.folder}; captures of a minute may take 2 GB",
            "name another `folder:` in the inventory, or give experiments a snap length",
        )
    else:
        yield Finding.good("disk", cell)


def _memory(facts: Facts) -> Finding:
    cell = f"{facts.memory_bytes / 2**30:.0f} GiB, {facts.processors} CPU"
    if facts.memory_bytes < MEMORY_BYTES_ADVISED:
        return Finding.note("memory", cell)
    return Finding.good("memory", cell)


def _code(facts: Facts, sha256: str) -> Finding:
    if sha256 in facts.folder.versions:
        return Finding.good("code", "this")
    return Finding.good("code", "another" if facts.folder.versions else "none")


def _runs(facts: Facts) -> Finding:
    counts = Counter(run.state for run in facts.runs)
    cell = ", ".join(f"{counts[state]} {state}" for state in (IN_USE, HELD, LEFT) if counts[state])
    left = [run for run in facts.runs if run.state != IN_USE]
    if not left:
        return Finding.good("runs", cell or "none")
    return Finding.note(
        "runs",
        f"{cell}, {sum(run.bytes for run in left) / 1e6:.0f} MB",
        f"without a controller: {', '.join(run.name for run in left)}",
        "`cutset fetch RUN --on INVENTORY` fetches its files, and `cutset hosts INVENTORY --clean` removes"
        " those of fetched runs",
    )


def _short(said: str) -> str:
    return said if len(said) <= MESSAGE_CHARACTERS_MAX else said[: MESSAGE_CHARACTERS_MAX - 1] + "…"
