"""Changes that wait until something happens: in virtual time right after it, to the microsecond.

A message counts when its process hands it to a connection, also within another one. What waits and never
happens is never done; the run's record says so by leaving it out.
"""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.planned.changes import Trigger
from experiments.planned.plan import Plan
from node.core import machine as m
from node.core.message_layout import Codec
from node.sim.process import Node
from node.sim.sim_network import Sent
from node.systems import codec_of


@dataclass(slots=True)
class _Waiting:
    index: int
    trigger: Trigger
    left: int


class Triggers:
    """The changes of a plan that wait. fire: is told a change's index. sent: is shown everything, too."""

    def __init__(self, plan: Plan, fire: Callable[[int], None], sent: Sent | None) -> None:
        self.any = bool(plan.triggered)
        self._fire, self._shown = fire, sent
        self._waiting: list[_Waiting] = []
        self._codec = codec_of(plan.system) or Codec([])

    def arm(self, index: int, trigger: Trigger) -> None:
        """Wait from now on."""
        self._waiting.append(_Waiting(index, trigger, trigger.times))

    def disarm(self) -> None:
        """Wait no longer: nothing changes any more."""
        self._waiting.clear()

    def sent(self, source: Node, target: Node, effect: m.Send) -> None:
        """See `Sent`."""
        if self._shown is not None:
            self._shown(source, target, effect)
        for each in [each for each in self._waiting if each.trigger.process == source.spec.name]:
            each.left -= sum(self._codec.holds(message, each.trigger.sends) for message in effect.messages)
            if each.left <= 0:
                self._waiting.remove(each)
                self._fire(each.index)
