"""Surveys: measurement of the delays to several nodes at once, to choose among them.

A survey ends when all have answered, or after a timeout with the results so far.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.pastry.overlay import Pastry
from node.protocols.reachability.nodes import NodeHandle

SURVEY = "survey"

MeasuredDelays = Mapping[Address, int]
"""One-way delays in microseconds of the nodes that answered."""


@dataclass(slots=True)
class _Survey:
    then: Callable[[MeasuredDelays], None]
    open: set[Address]
    delays_us: dict[Address, int] = field(default_factory=dict)


@dataclass(slots=True, eq=False)
class Surveys:
    """Surveys in progress at a node. `wait_us`: timeout of each."""

    wait_us: int
    pastry: Pastry
    emit: Callable[[PeerEffect], None]
    _surveys: dict[int, _Survey] = field(default_factory=dict)
    _number: int = 0

    def begin(self, nodes: Iterable[NodeHandle], then: Callable[[MeasuredDelays], None]) -> None:
        """Measure all nodes; `then` is called once with the results."""
        nodes = list(nodes)
        self._number += 1
        self._surveys[self._number] = _Survey(then, {node.address for node in nodes})
        self.emit(m.SetTimer((SURVEY, str(self._number)), self.pastry.reach.now_us + self.wait_us))
        for node in nodes:
            self.pastry.measure(node, partial(self._measured, self._number, node.address))
        self._end_if_complete(self._number)

    def timer(self, timer: m.Timer) -> bool:
        """Process a timer; return whether it belongs to a survey."""
        if timer[0] != SURVEY:
            return False
        self._end(int(timer[1]))
        return True

    def _measured(self, number: int, address: Address, rtt_us: int) -> None:
        survey = self._surveys.get(number)
        if survey is not None:
            survey.delays_us[address] = rtt_us // 2
            survey.open.discard(address)
            self._end_if_complete(number)

    def _end_if_complete(self, number: int) -> None:
        if not self._surveys[number].open:
            self.emit(m.CancelTimer((SURVEY, str(number))))
            self._end(number)

    def _end(self, number: int) -> None:
        survey = self._surveys.pop(number, None)
        if survey is not None:
            survey.then(survey.delays_us)
