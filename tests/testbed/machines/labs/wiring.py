"""The lab's networks, as lines for `ip -batch`. Pure.

Two bridges in the lab's network namespace. The controller is connected with the control bridge by its own
pair, `controller` and `control-port`, so that traffic to and from it can be slowed (tc-tbf(8)).
"""

CONTROLLER = "192.168.56.1"
CONTROL_BRIDGE, EXPERIMENT_BRIDGE = "control", "experiment"
CONTROLLER_END, CONTROLLER_PORT = "controller", "control-port"
FIRST = 10
"""The last byte of the first machine's addresses."""
BRIDGE_MTU = 9216


def control_address(number: int) -> str:
    """Return the address of machine `number` for SSH."""
    return f"192.168.56.{FIRST + number}"


def experiment_address(number: int) -> str:
    """Return the address of machine `number` in the experiment network."""
    return f"10.10.1.{FIRST + number}"


def control_port(number: int) -> str:
    """Return the bridge's port for machine `number`."""
    return f"c{number}"


def control_lines() -> list[str]:
    """Return the commands for the lab without machines."""
    return [
        f"link add {CONTROL_BRIDGE} type bridge stp_state 0 mcast_snooping 0",
        f"link add {EXPERIMENT_BRIDGE} mtu {BRIDGE_MTU} type bridge stp_state 0 mcast_snooping 0",
        f"link set {CONTROL_BRIDGE} up",
        f"link set {EXPERIMENT_BRIDGE} up",
        f"link add {CONTROLLER_END} type veth peer name {CONTROLLER_PORT}",
        f"link set {CONTROLLER_PORT} up master {CONTROL_BRIDGE}",
        f"address add {CONTROLLER}/24 dev {CONTROLLER_END}",
        f"link set {CONTROLLER_END} up",
    ]


def outside_lines(number: int, mtu: int) -> list[str]:
    """Return the lab's commands for a machine that comes up: MACHINE stands for its network namespace."""
    control, experiment = control_port(number), f"e{number}"
    return [
        f"link add {control} type veth peer name eth0 address {_mac(1, number)} netns MACHINE",
        f"link add {experiment} mtu {BRIDGE_MTU} type veth"
        f" peer name exp0 address {_mac(2, number)} mtu {mtu} netns MACHINE",
        f"link set {control} up master {CONTROL_BRIDGE}",
        f"link set {experiment} up master {EXPERIMENT_BRIDGE}",
    ]


def _mac(network: int, number: int) -> str:
    """Return a card's fixed address, which survives a restart of the machine."""
    return f"02:00:00:00:{network:02x}:{number:02x}"


def inside_lines(number: int) -> list[str]:
    """Return the commands on the machine."""
    return [
        "link set lo up",
        f"address add {control_address(number)}/24 dev eth0",
        f"address add {experiment_address(number)}/24 dev exp0",
        "link set eth0 up",
        "link set exp0 up",
    ]
