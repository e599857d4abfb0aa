"""The codecs of all systems: what the nodes speak, and what the analysis, Scapy, Wireshark and the
documentation read.
"""

from collections.abc import Mapping

from node.core.layout import Codec
from node.protocols.sprinkler import messages as sprinkler

CODECS: Mapping[str, Codec] = {"sprinkler": sprinkler.CODEC}
"""By the name of the system under test."""
