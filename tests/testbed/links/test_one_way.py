"""The exact lines of links with a direction that another machine emulates."""

from experiments.planned.changes import LinkDirectionName
from testbed.links.relay.controller import one_way_lines, remove_lines
from testbed.links.wiring import LinkWiring
from topologies.link_parameters import LinkParameters

BOTH = LinkWiring("r0-r1", "l0a", "l0b", dict.fromkeys(LinkDirectionName, LinkParameters()))
SENT_BY_A = LinkWiring("r0-r2", "l1a", "t1", {LinkDirectionName.FORWARD: LinkParameters()})
SENT_BY_B = LinkWiring("r2-r0", "t2", "l2b", {LinkDirectionName.BACKWARD: LinkParameters()})


def port_lines(bridge: str, port: str, flood: str) -> list[str]:
    flags = f"flood {flood} mcast_flood {flood} bcast_flood {flood}"
    return [
        f"link set {port} up master {bridge}",
        f"link set {port} type bridge_slave learning off {flags}",
    ]


def test_a_bridge_floods_towards_the_end_that_is_here() -> None:
    assert one_way_lines([BOTH, SENT_BY_A, SENT_BY_B]) == [
        "link add ow1 type bridge stp_state 0 mcast_snooping 0",
        "link set ow1 up",
        *port_lines("ow1", "l1a", "on"),
        *port_lines("ow1", "t1", "off"),
        "link add ow2 type bridge stp_state 0 mcast_snooping 0",
        "link set ow2 up",
        *port_lines("ow2", "t2", "off"),
        *port_lines("ow2", "l2b", "on"),
    ]


def test_created_objects_are_removed() -> None:
    assert remove_lines([BOTH, SENT_BY_A, SENT_BY_B]) == ["link del ow1", "link del ow2"]


def test_links_within_a_machine_need_none() -> None:
    assert one_way_lines([BOTH]) == []
