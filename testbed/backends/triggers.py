"""Changes that wait for a message, in virtual time: applied right after it, to the microsecond.

A message counts when its process hands it to a connection, also inside another message. A change whose
message is never sent is never applied, and is missing in the run's record.
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
class _ArmedTrigger:
    index: int
    trigger: Trigger
    left: int


class Triggers:
    """The waiting changes of a plan. fire: called with a change's index. sent: gets each message."""

    def __init__(self, plan: Plan, fire: Callable[[int], None], sent: Sent | None) -> None:
        self.any = bool(plan.triggered)
        self._fire, self._shown = fire, sent
        self._waiting: list[_ArmedTrigger] = []
        self._codec = codec_of(plan.system) or Codec([])

    def arm(self, index: int, trigger: Trigger) -> None:
        """Let a change wait from now on."""
        self._waiting.append(_ArmedTrigger(index, trigger, trigger.times))

    def disarm(self) -> None:
        """Stop waiting: no change is applied any more."""
        self._waiting.clear()

    def sent(self, source: Node, target: Node, effect: m.Send) -> None:
        """Count the watched messages; see `Sent`."""
        if self._shown is not None:
            self._shown(source, target, effect)
        for each in [each for each in self._waiting if each.trigger.process == source.spec.name]:
            each.left -= sum(self._codec.holds(message, each.trigger.sends) for message in effect.messages)
            if each.left <= 0:
                self._waiting.remove(each)
                self._fire(each.index)
