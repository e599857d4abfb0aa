"""Peers: dialing, greetings, duplicate connections, and pools of connections."""
