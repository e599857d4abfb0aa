"""The network of a run: Mininet hosts, regions' bridges, gateways, links between veth ends."""
