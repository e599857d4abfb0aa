"""Messages as a confused or malicious peer would send them: nearly right for the machine that gets them.

Most are such as the sender's role may send, with numbers around those that the machine has, so that they
reach deep; the others are of any kind and with any numbers.
"""

from random import Random

from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.chain.configurations import ReplicaChain
from tests.node.protocols.sprinkler.one_machine import NAMES, ROLES, Around

FAR = (0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
U32 = 2**32 - 1


class Chatter:
    """Says things to one machine. Everything follows from the generator."""

    def __init__(self, around: Around, rng: Random) -> None:
        self.around = around
        self.rng = rng

    def step(self) -> None:
        """Something happens."""
        rng = self.rng
        what = rng.choices(
            ["accept", "dialled", "messages", "malformed", "lost", "time", "disk"], [4, 8, 60, 0.5, 1, 8, 6]
        )[0]
        if what == "accept":
            self.around.do(what, rng.choice(NAMES), rng.randrange(1, 3))
        elif what == "messages":
            number = rng.randrange(8)
            connection = self.around.pick(number)
            if connection is not None:
                role = self.role_of(connection)
                self.around.do(what, number, [self.message(role) for _ in range(rng.randrange(1, 5))])
        elif what == "time":
            self.around.do(what, rng.choice([100, 10_000, 100_000, 700_000, 3_000_000]), 0)
        elif what == "disk":
            self.around.do(what, rng.random() < 0.9, 0)
        else:
            self.around.do(what, rng.randrange(8), rng.randrange(4))

    def role_of(self, connection):
        channel = self.around.machine.connections.get(connection)
        return None if channel is None else channel.role

    def message(self, role):
        """One that this role may send, mostly."""
        taken = [kind for sender, kind in self.around.machine.takes if sender is role]
        kinds = [layout.message for layout in wire.CODEC.by_type.values()]
        kind = self.rng.choice(taken) if taken and self.rng.random() < 0.97 else self.rng.choice(kinds)
        return getattr(self, kind.__name__.lower())()

    # --- Numbers

    def stream(self):
        return self.rng.choice([0, 0, 0, 1, 1, 1, 7] if self.rng.random() < 0.95 else FAR[:4])

    def seq(self, stream=0):
        """Around what the machine has of the stream."""
        if self.rng.random() < 0.05:
            return max(1, self.rng.choice(FAR))
        machine, cnt = self.around.machine, 0
        if hasattr(machine, "history"):
            cnt = machine.history.streams[stream].cnt if stream in machine.history.streams else 0
        elif hasattr(machine, "cnt") and stream in machine.cnt:
            cnt = machine.cnt[stream]
        return min(2**64 - 1, max(1, cnt + self.rng.choice([1, 1, 1, 1, 1, 0, -1, -5, 2, 5, -30])))

    def number(self):
        return self.rng.choice([0, 1, 2, 3, 4, 5]) if self.rng.random() < 0.95 else self.rng.choice(FAR)

    def configuration_number(self):
        machine = self.around.machine
        known = 0
        if hasattr(machine, "chains"):
            known = max(machine.chains.chain(region).number for region in ("r0", "r1"))
        elif isinstance(getattr(machine, "chain", None), ReplicaChain):
            known = machine.chain.number
        return (
            max(0, min(known, 2**40) + self.rng.choice([0, 0, 0, 1, 1, -1]))
            if self.rng.random() < 0.97
            else 2**64 - 1
        )

    def counters(self):
        streams = [self.stream() for _ in range(self.rng.randrange(4))]
        return tuple(wire.Counter(stream, self.seq(stream)) for stream in streams)

    def batch(self):
        """kind, predicate, count, event_bytes, argument, payload."""
        rng = self.rng
        predicate = rng.choice([0, 0, 0, 1, 2, 3, 4])
        argument = rng.choice([0, 1, 2, 4, 5, 20, rng.choice(FAR)]) if predicate else 0
        count, size = rng.randrange(1, 9), rng.randrange(1, 9)
        payload = bytes(rng.randrange(3) for _ in range(count * size))
        if rng.random() < 0.3:
            payload = count * size.to_bytes(4, "big") + payload
            return int(predicate > 0), predicate, count, 0, argument, payload
        return int(predicate > 0), predicate, count, size, argument, payload

    # --- Messages, by their class's name

    def hello(self):
        name = self.rng.choice(NAMES)
        return wire.Hello(ROLES.get(name, wire.Role.CLIENT), self.number(), name)

    def advertisement(self):
        return wire.Advertisement(self.counters())

    def paths(self):
        rows = [
            wire.Hop(self.stream(), region) for region in self.rng.sample(range(4), self.rng.randrange(4))
        ]
        return wire.Paths(tuple(rows))

    def subscribe(self):
        stream = self.stream()
        return wire.Subscribe(stream, self.seq(stream) - 1)

    def unsubscribe(self):
        return wire.Unsubscribe(self.stream())

    def events(self):
        stream = self.stream()
        if self.rng.random() < 0.1:
            count = self.rng.choice([1, 5, U32])
            return wire.Events(2, 0, stream, self.seq(stream), count, 0, 0, 0, b"")
        kind, predicate, count, size, argument, payload = self.batch()
        return wire.Events(
            kind, predicate, stream, self.seq(stream), count, size, argument, self.number(), payload
        )

    def sparseevents(self):
        stream = self.stream()
        kind, predicate, count, size, argument, payload = self.batch()
        reaches = [
            self.rng.choice([1, 1, 1, 2, 9] + [U32] * (self.rng.random() < 0.02)) for _ in range(count)
        ]
        table = b"".join(reach.to_bytes(4, "big") for reach in reaches)
        return wire.SparseEvents(
            kind, predicate, stream, self.seq(stream), count, size, argument, self.number(), table + payload
        )

    def publish(self):
        kind, predicate, count, size, argument, payload = self.batch()
        return wire.Publish(
            kind, predicate, self.stream(), self.rng.randrange(1, 30), count, size, argument, payload
        )

    def published(self):
        return wire.Published(self.stream(), self.rng.randrange(1, 30), self.seq(), self.rng.randrange(9))

    def refused(self):
        return wire.Refused(self.rng.randrange(12), self.stream(), self.rng.randrange(30), "because")

    def view(self):
        return wire.View(
            tuple(
                wire.Neighbour(self.rng.randrange(20), 0x0A000001 + self.rng.randrange(20))
                for _ in range(self.rng.randrange(5))
            )
        )

    def notify(self):
        return wire.Notify(self.counters())

    def request(self):
        stream = self.stream()
        first = self.seq(stream)
        return wire.Request(stream, first, min(2**64 - 1, first + self.rng.choice([0, 3, 50, 2**40])))

    def answered(self):
        stream = self.stream()
        return wire.Answered(stream, self.seq(stream), self.seq(stream), self.seq(stream))

    def publication(self):
        count, request = self.rng.randrange(1, 9), self.rng.randrange(1, 30)
        return wire.Publication(
            self.stream(), self.seq(), count, request, self.number(), self.rng.choice(NAMES)
        )

    def follow(self):
        return wire.Follow(self.configuration_number(), self.counters())

    def stored(self):
        return wire.Stored(self.counters())

    def token(self):
        return wire.Token(self.configuration_number())

    def configuration(self):
        rng = self.rng
        incarnations = [0, 0, getattr(self.around.machine, "incarnation", 0), 1, 2]
        rows = [
            wire.Replica(index, int(rng.random() < 0.2), rng.choice(incarnations))
            for index in rng.sample(
                [0, 1, 2, U32] if rng.random() < 0.1 else [0, 1],
                rng.randrange(3) if rng.random() < 0.2 else 2,
            )
        ]
        if rng.random() < 0.05:
            rows.append(rng.choice([wire.Replica(0, 7, 0), wire.Replica(1, 0, 5)]))
        number = self.configuration_number() + 1
        return wire.Configuration(min(number, 2**64 - 1), rng.choice([0, 1, number]) % 2**64, tuple(rows))

    def status(self):
        cnt = self.rng.choice([0, 7, 1000])
        return wire.Status(self.configuration_number(), cnt, int(self.rng.random() < 0.2))

    def joined(self):
        return wire.Joined(self.configuration_number())

    def whole(self):
        return wire.Whole(self.configuration_number())
