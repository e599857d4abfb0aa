"""The backlog: link directions with frames that were read from the rings and not admitted yet, served round
robin.

After each portion of work the relay sends what is due and polls the rings again. A direction with more than
one portion goes to the end of the queue: a burst on one link, or frames that piled up while the relay was
delayed, keep the others waiting for at most one portion each.
"""

from testbed.links.relay.ingress import Ingress

PORTION_BYTES = 200_000  # of frames admitted before the loop goes on, see `ingress.FRAME_COST_BYTES`


class Backlog:
    """A round-robin queue of link directions; false while it is empty."""

    __slots__ = ("_ingresses",)

    def __init__(self) -> None:
        self._ingresses: dict[Ingress, None] = {}  # in round-robin order

    def __bool__(self) -> bool:
        return bool(self._ingresses)

    def add(self, ingress: Ingress) -> None:
        """Put a direction at the end of the queue, unless it is queued already."""
        self._ingresses[ingress] = None

    def admit_portion(self) -> None:
        """Admit one portion of frames, from several directions if the first have less."""
        ingresses, room_bytes = self._ingresses, PORTION_BYTES
        while ingresses and room_bytes > 0:
            ingress = next(iter(ingresses))
            del ingresses[ingress]
            room_bytes = ingress.admit(room_bytes)
            if ingress.pending:
                ingresses[ingress] = None
