"""One machine in an environment with any inputs that the rules of `node.core.machine` allow.

It checks that sent messages can be encoded and are accepted by decoders, and that the number of effects per
input is bounded.
"""

from random import Random

from node.core import machine as m
from node.core.errors import RemoteProtocolError
from node.core.framing import frames_in
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.messages import CODEC
from node.systems import build_machine
from tests.node.cluster import specs

EFFECTS_MAX = 2000  # of one input
DURABLE = {"parameters": {"durable": True}, "storage": "/disks", "regions": 2, "clients": 2}
LAYOUTS = {  # in the first a replica waits for a service; in the other it is head and tail at once
    "configured": specs(proxies=2, configuration=True, **DURABLE),
    "alone": specs(proxies=1, **DURABLE),
}
NAMES = [spec.name for spec in LAYOUTS["configured"]] + ["r0/proxy-9", "stranger", "x" * 255]
ROLES = {spec.name: wire.Role[spec.role.upper()] for spec in LAYOUTS["configured"]}


class Around:
    """The environment of one machine, with any inputs that the rules allow."""

    def __init__(self, layout, name):
        self.spec = next(spec for spec in LAYOUTS[layout] if spec.name == name)
        self.machine = build_machine(self.spec, Random(1))
        self.now_us = 0
        self.open: set[int] = set()  # connections
        self.dialling: list[str] = []
        self.timers: dict[m.Timer, int] = {}
        self.writable: list[int] = []
        self.number = 0
        self.appended = 0
        self.sent: list = []
        self.unread: set[int] = set()
        self.give(m.Started())

    def give(self, given):
        effects = self.machine.handle(given, self.now_us)
        assert len(effects) < EFFECTS_MAX
        for effect in effects:
            self.execute(effect)

    def execute(self, effect):
        match effect:
            case m.Send(number, messages):
                for message in messages:
                    frame = b"".join(CODEC.encode(message, self.machine.frame_limit_bytes))
                    assert CODEC.decode(next(frames_in(frame, len(frame)))) == message
                self.sent += [(number, message) for message in messages]
            case m.Connect(peer=peer):
                self.dialling.append(peer)
                assert self.dialling.count(peer) <= 2 * (1 + self.number)
            case m.Close(number):
                self.open.discard(number)
            case m.SetTimer(timer, at_us):
                self.timers[timer] = at_us
            case m.CancelTimer(timer):
                self.timers.pop(timer, None)
            case m.AwaitWritable(number):
                self.writable.append(number)
            case m.Append(messages=messages):
                assert all(CODEC.encode(message) for message in messages)
                self.appended += 1
            case m.PauseReading(number):
                self.unread.add(number)
            case m.ResumeReading(number):
                self.unread.discard(number)

    def pick(self, choice):
        return sorted(self.open)[choice % len(self.open)] if self.open else None

    def do(self, what, first, second):
        number = self.pick(first) if what in {"messages", "malformed", "lost"} else None
        match what:
            case "accept":
                self.open_with(first, second)
            case "dialled" if self.dialling:
                peer = self.dialling.pop(first % len(self.dialling))
                if second:
                    self.open_with(peer, second, dialled=peer)
                else:
                    self.give(m.ConnectFailed(peer, "refused"))
            case "messages" if number is not None and number not in self.unread:
                self.receive(number, second)
            case "malformed" if number is not None:
                self.give(m.Malformed(number, "garbage"))
            case "lost" if number is not None:
                self.open.remove(number)
                self.give(m.Disconnected(number, "reset"))
            case "time":
                self.pass_time(first)
            case "disk" if first:
                self.give(m.Synced(self.appended))
            case "disk":
                self.give(m.StorageFailed("no space left on device"))

    def open_with(self, name, incarnation, dialled=None):
        """Open a connection with a peer of this name."""
        self.number += 1
        number = self.number
        self.open.add(number)
        self.give(m.Connected(number, dialled))
        if number in self.open:
            role = ROLES.get(name, wire.Role.CLIENT)
            self.give(m.Received(number, [wire.Hello(role, incarnation, name)]))

    def receive(self, number, messages):
        """Deliver a message as a connection does: one that decoders refuse ends the connection."""
        good = []
        for message in messages:
            try:
                frame = b"".join(CODEC.encode(message))
                good.append(CODEC.decode(next(frames_in(frame))))
            except RemoteProtocolError as error:
                self.give(m.Received(number, good))
                self.give(m.Malformed(number, str(error)))
                return
        self.give(m.Received(number, good))

    def pass_time(self, microseconds):
        until_us = self.now_us + microseconds
        for number in self.writable:
            if number in self.open:
                self.give(m.Writable(number))
        self.writable.clear()
        for _ in range(500):
            due = min(self.timers.items(), key=lambda each: each[1], default=None)
            if due is None or due[1] > until_us:
                break
            timer, at_us = due
            del self.timers[timer]
            self.now_us = max(self.now_us, at_us)
            self.give(m.TimerFired(timer))
        self.now_us = until_us
