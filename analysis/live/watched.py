"""What can be watched while a run goes on: which systems, and which hosts' captures tell of it.

Of programs no captures are watched: their clients write down what they publish and get (`recorded`).
"""

from experiments.declared import Trait
from node.systems import codec_of

TRAITS = (Trait.SUBSCRIBER, Trait.PUBLISHER)


def can_watch(system: str) -> bool:
    """Whether this system's messages are known."""
    return codec_of(system) is not None
