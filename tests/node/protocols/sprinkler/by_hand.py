"""A machine of Sprinkler with inputs by hand: the test is at the other end of every connection."""

from node.core import machine as m
from node.protocols.sprinkler.messages import Advertisement, Hello, Role


class ByHand:
    """A started machine. effects: its effects, without the messages that `sent` has returned."""

    def __init__(self, machine, stored=()):
        self.machine = machine
        self.now_us = 0
        self.effects = []
        self.connections = {}
        self.connected = 0
        self.give(m.Started(stored), after_us=0)

    def give(self, given, after_us=10_000):
        self.now_us += after_us
        self.effects += self.machine.handle(given, self.now_us)

    def connect(self, name, *messages, incarnation=1):
        """Open a connection with HELLO and a heartbeat; the peer's role follows from its name."""
        self.connected += 1
        self.connections[name] = self.connected
        self.give(m.Connected(self.connected))
        role = Role[name.rpartition("/")[2].partition("-")[0].upper()]
        self.say(name, Hello(role, incarnation, name), Advertisement(()), *messages)

    def say(self, name, *messages, after_us=10_000):
        self.give(m.Received(self.connections[name], messages), after_us)

    def lose(self, name):
        self.give(m.Disconnected(self.connections.pop(name), "broken"))

    def sent(self, name, *kinds):
        """Return the messages to a peer since the last call, of these kinds."""
        number, kept, found = self.connections[name], [], []
        for effect in self.effects:
            if isinstance(effect, m.Send) and effect.connection == number:
                found += effect.messages
            else:
                kept.append(effect)
        self.effects = kept
        return [message for message in found if isinstance(message, kinds or object)]

    def logged(self, event):
        return [each for each in self.effects if isinstance(each, m.Log) and each.event == event]

    @property
    def closed(self):
        """Return the numbers of the connections that the machine closed."""
        return {each.connection for each in self.effects if isinstance(each, m.Close)}
