"""Meghdoot for applications, on a peer of its own: subscribe to ranges of values, publish values (3.1).

stocks = (Attribute("symbol", "string", 0, 26, length=1), Attribute("price", "real", 0, 500))
alice = MeghdootPeer("alice", "127.0.0.1", attributes=stocks, rng=Random(1))
number = alice.subscribe(print, symbol="a", price=(10, 20))
alice.publish({"symbol": "a", "price": 12.5}, b"a hint")
alice.unsubscribe(number)
"""

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from node.core import machine as m
from node.core.content.content import NOUNS, UNSPECIFIED, ContentAttribute, Range, event_ranges, matches
from node.core.framing import refuse_longer
from node.core.specification import PlannedSubscription
from node.protocols.meghdoot.messages import Notify
from node.protocols.meghdoot.node import MeghdootNode
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.overlay.node import unplanned_spec
from node.protocols.overlay.peer import OverlayPeer
from node.protocols.reachability.nodes import ID_BITS

STREAM_BITS = 32
Wanted = float | str | tuple[float | str | None, float | str | None]
"""Condition on an attribute: one value, or first and last value of a range; None: the attribute's bound."""


@dataclass(frozen=True, slots=True)
class PeerEvent:
    """An event for a subscriber. publisher: number of a peer's process generation, which numbers its
    events.
    """

    publisher: int
    seq: int
    values: Mapping[str, float | str]
    content: bytes


Handler = Callable[[PeerEvent], None]


class MeghdootPeer(OverlayPeer[MeghdootNode]):
    """A peer and the requests of an application.

    contacts: addresses of existing peers; without any this is the first one. attributes: the schema, the same
    for all peers. life: number of earlier peers at this address; other peers use it to distinguish its
    subscriptions and events, so an application must count its restarts. parameters: those of an experiment,
    `meghdoot.parameters`. confirmed: called with the number of a subscription when it becomes active.
    """

    def __init__(
        self,
        name: str,
        address: str,
        contacts: Iterable[str] = (),
        *,
        attributes: Sequence[ContentAttribute],
        rng: m.Randomness,
        life: int = 0,
        **parameters: Any,
    ) -> None:
        """Create a peer. Raises ValueError for an unknown parameter, or for two attributes of one name."""
        MeghdootParameters.refuse_unknown(parameters)
        names = [each.name for each in attributes]
        if twice := next((name for place, name in enumerate(names) if name in names[:place]), None):
            raise ValueError(f"duplicate attribute {twice!r:.40}")
        workload = {"attributes": [asdict(each) for each in attributes]}
        given = {"workload": workload, "start": life}
        spec = unplanned_spec(
            "meghdoot", "peer", name, address, contacts=contacts, parameters=parameters, **given
        )
        node = MeghdootNode(spec, rng)
        super().__init__(node, node.parameters.port)
        self.confirmed: Callable[[int], None] = lambda number: None
        self._attributes = tuple(attributes)
        self._values = struct.Struct(f">{len(self._attributes)}d")
        self._node.told, self._node.confirmed = self._on_notify, self._confirmed
        self._handlers: dict[int, tuple[tuple[Range, ...], Handler]] = {}
        self._asked = 0

    # --- Meghdoot (3)

    def subscribe(self, handler: Handler, **wanted: Wanted) -> int:
        """Subscribe to events with the given values, and any values of other attributes.

        Return the number of the subscription. Raises ValueError that names an unknown attribute or a bad
        value.
        """
        self._refuse_unknown(wanted)
        ranges = tuple(_range(each, wanted.get(each.name, (None, None))) for each in self._attributes)
        number = self._asked
        self._asked += 1
        self._handlers[number] = ranges, handler
        self._ask(
            partial(self._node.broker.subscriber.subscribe, PlannedSubscription(0, number, True, ranges))
        )
        return number

    def unsubscribe(self, number: int) -> None:
        """End a subscription. Raises KeyError if it does not exist."""
        ranges, _ = self._handlers.pop(number)
        self._ask(
            partial(self._node.broker.subscriber.subscribe, PlannedSubscription(0, number, False, ranges))
        )

    def publish(self, values: Mapping[str, float | str], content: bytes = b"") -> None:
        """Publish an event. An attribute without a value stands for all of its values (3.4).

        The event is repeated until all subscribers have it (`delivery: exactly-once`). Raises ValueError as
        `subscribe`, and if the content is too long for a frame.
        """
        refuse_longer(content, self.frame_limit_bytes - self._values.size)
        self._refuse_unknown(values)
        said = [_value(each, values[each.name]) if each.name in values else None for each in self._attributes]
        numbers = [UNSPECIFIED if value is None else value for value in said]
        self._ask(partial(self._publish, self._values.pack(*numbers) + content))

    def _publish(self, payload: bytes) -> None:
        stream = self.node.id >> (ID_BITS - STREAM_BITS)
        if self._node.broker.publisher.has_room(stream):
            self._node.broker.publisher.publish(stream, payload)
        else:
            self._requests.append(partial(self._publish, payload))

    def _refuse_unknown(self, named: Iterable[str]) -> None:
        known = [each.name for each in self._attributes]
        if unknown := [name for name in named if name not in known]:
            raise ValueError(f"unknown attribute {unknown[0]!r:.40}; known ones: {', '.join(known)}")

    def _confirmed(self, number: int) -> None:
        self.confirmed(number)

    def _on_notify(self, message: Notify) -> None:
        """Call the handlers of the subscriptions that match an event."""
        payload = bytes(message.payload)
        numbers = self._values.unpack_from(payload)
        ranges = event_ranges(self._attributes, numbers)
        values = {
            each.name: value if each.kind in {"real", "integer"} else each.text(value)
            for each, value in zip(self._attributes, numbers, strict=True)
            if value == value  # noqa: PLR0124 # an unspecified value is NaN
        }
        event = PeerEvent(message.stream, message.first_seq, values, payload[self._values.size :])
        for wanted, handler in list(self._handlers.values()):
            if matches(wanted, ranges):
                handler(event)


def _value(attribute: ContentAttribute, given: float | str) -> float:
    """Return a value as a number. Raises ValueError."""
    if isinstance(given, bool) or not isinstance(given, (int, float, str)):
        raise ValueError(f"{attribute.name}: {given!r:.40} is not {NOUNS[attribute.kind]}")  # noqa: TRY004
    try:
        return attribute.number(given if isinstance(given, str) else f"{given:.17g}")
    except ValueError as error:
        raise ValueError(f"{attribute.name}: {error}") from None


def _range(attribute: ContentAttribute, wanted: Wanted) -> Range:
    if not isinstance(wanted, tuple):
        value = _value(attribute, wanted)
        return value, value
    if len(wanted) != 2:
        raise ValueError(f"{attribute.name}: a range is (first, last), not {wanted!r:.40}")
    first, last = wanted
    low = attribute.low if first is None else _value(attribute, first)
    high = attribute.high if last is None else _value(attribute, last)
    if low > high:
        raise ValueError(f"{attribute.name}: the range ends before it begins")
    return low, high
