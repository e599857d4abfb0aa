"""The network of a run: Mininet hosts, regions' bridges, gateways, and links between veth ends."""
