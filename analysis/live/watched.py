"""What can be watched: which systems, and which hosts' captures tell of throughput and latency."""

from node.protocols.codecs import CODECS

ROLES = ("client", "driver")
SYSTEMS = frozenset(CODECS)
"""Those whose messages are known."""
