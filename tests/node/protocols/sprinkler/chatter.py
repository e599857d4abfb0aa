"""Messages of a confused or malicious peer: nearly valid for the machine that receives them.

Most are messages that the sender's role may send, with numbers around those of the machine, so that they get
far; the others are of any kind with any numbers.
"""

from dataclasses import fields
from random import Random

from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.chain.configurations import ReplicaChain
from tests.node.protocols.sprinkler.one_machine import NAMES, ROLES, Around

FAR = (0, 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1)
U32, MAX = 2**32 - 1, 2**64 - 1


class Chatter:
    """Sends messages to one machine. All of them follow from the generator."""

    def __init__(self, around: Around, rng: Random) -> None:
        self.around = around
        self.rng = rng

    def step(self) -> None:
        """Execute one random step."""
        rng = self.rng
        what = rng.choices(
            ["accept", "dialled", "messages", "malformed", "lost", "time", "disk"], [4, 8, 60, 0.5, 1, 8, 6]
        )[0]
        first, second = rng.randrange(8), rng.randrange(4)
        if what == "accept":
            first = rng.choice(NAMES)
        elif what == "messages":
            channel = self.around.machine.connections.get(self.around.pick(first))
            role = None if channel is None else channel.role
            second = [self.message(role) for _ in range(rng.randrange(1, 5))]
        elif what == "time":
            first = rng.choice([100, 10_000, 100_000, 700_000, 3_000_000])
        elif what == "disk":
            first = rng.random() < 0.9
        self.around.do(what, first, second)

    def message(self, role):
        """Return a message, mostly one that this role may send."""
        taken = [kind for sender, kind in self.around.machine.takes if sender is role] + [wire.Refused]
        kinds = [layout.message for layout in wire.CODEC.by_type.values()]
        return self.made(self.rng.choice(taken if self.rng.random() < 0.97 else kinds))

    def made(self, kind):
        """Generate a message or a row, field by field."""
        if kind in {wire.Events, wire.SparseEvents, wire.Publish}:
            return self.batch(kind)
        if kind is wire.Configuration:
            return self.configuration()
        stream = self.stream()
        given = {"stream": stream} | {
            each.name: self.value(each.name, stream) for each in fields(kind) if each.name != "stream"
        }
        if kind is wire.Request:
            given["cnt"] = min(MAX, given["next"] + self.rng.choice([0, 3, 50, 2**40]))
        elif kind is wire.Hello:
            given["role"] = ROLES.get(given["name"], wire.Role.CLIENT)
        return kind(**{name: value for name, value in given.items() if name in kind.__dataclass_fields__})

    # --- Fields, by their names

    def value(self, name, stream):
        rng = self.rng
        match name:
            case "cnt" | "next" | "last" | "first_seq":
                return self.seq(stream) - rng.randrange(2)
            case "configuration":
                return self.configuration_number()
            case "name":
                return rng.choice(NAMES)
            case "reason":
                return "because"
            case "disk":
                return int(rng.random() < 0.2)
            case "counters":
                return self.rows(wire.Counter)
            case "neighbours":
                return self.rows(wire.Neighbour)
            case "hops":
                regions = rng.sample(range(4), rng.randrange(4))
                return tuple(wire.Hop(self.stream(), region) for region in regions)
            case "address":
                return 0x0A000001 + rng.randrange(20)
            case "code" | "count" | "request" | "first_request" | "member":
                return rng.randrange(1, 20)
        return self.number()

    def rows(self, kind):
        return tuple(self.made(kind) for _ in range(self.rng.randrange(5)))

    def stream(self):
        return self.rng.choice([0, 0, 0, 1, 1, 1, 7] if self.rng.random() < 0.95 else FAR[:4])

    def seq(self, stream):
        """Return a number near the machine's progress in the stream."""
        if self.rng.random() < 0.05:
            return max(1, self.rng.choice(FAR))
        machine = self.around.machine
        state = machine.history.streams.get(stream) if hasattr(machine, "history") else None
        cnt = 0 if state is None else state.cnt
        return min(MAX, max(1, cnt + self.rng.choice([1, 1, 1, 1, 1, 0, -1, -5, 2, 5, -30])))

    def number(self):
        return self.rng.choice([0, 1, 2, 3, 4, 5]) if self.rng.random() < 0.95 else self.rng.choice(FAR)

    def configuration_number(self):
        machine = self.around.machine
        known = max(machine.chains.chain(region).number for region in ("r0", "r1"))
        if isinstance(getattr(machine, "chain", None), ReplicaChain):
            known = machine.chain.number
        near = max(0, min(known, 2**40) + self.rng.choice([0, 0, 0, 1, 1, -1]))
        return near if self.rng.random() < 0.97 else MAX

    # --- Messages whose fields have to fit together

    def batch(self, kind):
        rng, stream = self.rng, self.stream()
        first = rng.randrange(1, 30) if kind is wire.Publish else self.seq(stream)
        if kind is wire.Events and rng.random() < 0.15:
            tombstone = wire.Events(2, 0, stream, first, rng.choice([1, 5, U32]), 0, 0, 0, b"")
            return rng.choice(
                [tombstone, wire.Events(3, 0, stream, first, 0, 0, rng.randrange(1, 4), 0, b"")]
            )
        predicate = rng.choice([0, 0, 0, 1, 2, 3, 4])
        argument = rng.choice([0, 1, 2, 4, 5, 20, rng.choice(FAR)]) if predicate else 0
        count, size = rng.randrange(1, 9), rng.randrange(1, 9)
        payload = bytes(rng.randrange(3) for _ in range(count * size))
        if rng.random() < 0.3:
            payload, size = count * size.to_bytes(4, "big") + payload, 0
        head = (int(predicate > 0), predicate, stream, first, count, size, argument)
        if kind is wire.Publish:
            return kind(*head, payload)
        if kind is wire.SparseEvents:
            far = [U32] * (rng.random() < 0.02)
            payload = (
                b"".join(rng.choice([1, 1, 1, 2, 9, *far]).to_bytes(4, "big") for _ in range(count)) + payload
            )
        return kind(*head, self.number(), payload)

    def configuration(self):
        rng = self.rng
        incarnations = [0, 0, getattr(self.around.machine, "incarnation", 0), 1, 2]
        indices = [0, 1, 2, U32] if rng.random() < 0.1 else [0, 1]
        indices = rng.sample(indices, rng.randrange(3) if rng.random() < 0.2 else 2)
        rows = [wire.Replica(at, int(rng.random() < 0.2), rng.choice(incarnations)) for at in indices]
        if rng.random() < 0.05:
            rows.append(rng.choice([wire.Replica(0, 7, 0), wire.Replica(1, 0, 5)]))
        number = self.configuration_number() + 1
        return wire.Configuration(min(number, MAX), rng.choice([0, 1, number]) % 2**64, tuple(rows))
