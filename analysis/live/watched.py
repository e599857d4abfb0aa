"""The systems and hosts whose captures are watched during a run.

For programs no captures are watched: their clients record publications and deliveries (`recorded`).
"""

from experiments.declared import Trait
from node.systems import codec_of

TRAITS = (Trait.SUBSCRIBER, Trait.PUBLISHER)


def can_watch(system: str) -> bool:
    """Return whether this system's messages can be decoded."""
    return codec_of(system) is not None
