"""The network of a run: Mininet hosts, regions' bridges, gateways, links between veth ends."""

from testbed.network.network import Network

__all__ = ["Network"]
