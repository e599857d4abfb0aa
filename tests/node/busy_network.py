"""A flat network whose nodes share a few processors: input waits until a processor is free for its node.

A node handles its inputs in order, all waiting ones in one turn, like an event loop; each takes time for
itself and for each message received or sent. Timers fire late if processors are busy, and effects happen when
the work is done. A waiting timer that is reset or cancelled does not fire, as in an event loop.
"""

from collections import deque

from node.core import machine as m
from node.core.peers.peer_pool import ReceivedFrom, SendTo
from node.sim.flat_network import FlatNetwork


class BusyNetwork(FlatNetwork):
    """A network with busy processors. processors: their number. input_us, message_us: processor time per
    input and per message.
    """

    def __init__(self, delay_us, told, *, processors=2, input_us=100, message_us=400):
        super().__init__(delay_us, told)
        self.free, self.input_us, self.message_us = processors, input_us, message_us
        self.worked_us = 0
        self._waiting, self._turns = {}, deque()

    def _arrive(self, sent):
        target, received = sent
        node = self.nodes.get(target)
        if node is None or node.is_finished:
            super()._arrive(sent)
        else:
            self._give(node, received)

    def _give(self, node, given):
        self._queue(node, given, None)

    def _fire(self, planned):
        node, timer, serial = planned
        if node.timers.get(timer) == serial:
            self._queue(node, m.TimerFired(timer), serial)

    def _queue(self, node, given, serial):
        waiting = self._waiting.get(node)
        if waiting is None:
            self._waiting[node] = deque([(given, serial)])
            self._turns.append(node)
            self._begin_turns()
        else:
            waiting.append((given, serial))

    def _begin_turns(self):
        while self.free and self._turns:
            self.free -= 1
            node = self._turns.popleft()
            self._work((node, len(self._waiting[node])))

    def _work(self, turn):
        """Handle the next input of a turn."""
        node, left = turn
        waiting = self._waiting[node]
        if not left or node.is_finished:
            self._end_turn(node)
            return
        given, serial = waiting.popleft()
        if serial is not None:
            if node.timers.get(given.timer) != serial:
                self._work((node, left - 1))
                return
            del node.timers[given.timer]
        effects = node.machine.handle(given, self.clock.now_us)
        messages = len(given.messages) if isinstance(given, ReceivedFrom) else 0
        messages += sum(len(effect.messages) for effect in effects if isinstance(effect, SendTo))
        cost_us = self.input_us + messages * self.message_us
        self.worked_us += cost_us
        self.clock.at(self.clock.now_us + cost_us, self._done, (node, effects, left - 1))

    def _done(self, work):
        node, effects, left = work
        if not node.is_finished:
            self._execute(node, effects)
        self._work((node, left))

    def _end_turn(self, node):
        self.free += 1
        if self._waiting[node] and not node.is_finished:
            self._turns.append(node)
        else:
            del self._waiting[node]
        self._begin_turns()
