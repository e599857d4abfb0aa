"""Declaration of a system under test, so that no other code needs to know its names.

`Declared` is plain data: it is copied into the plan and run.json. Planner, monitor, checkers and figures
query it for *traits* of roles and for the *contract*. `System` is `Declared` with the code that it names:
parameters, machines, codec, reading. Code is an object or a reference, "package.module:attribute", which
`node.systems` resolves when it is needed, so that validating a file imports no machines. References are taken
only from a system that is installed or named by the user, never from an experiment or a run directory.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any, Literal, Self, get_args

NAME = re.compile("[a-z][a-z0-9_-]{0,29}", re.ASCII)
"""Names of systems and roles; they occur in host names, file names and commands."""


class Trait(StrEnum):
    """Function of a role in a run. A role may have several."""

    PUBLISHER = "publisher"  # publishes the workload's events and records them
    SUBSCRIBER = "subscriber"  # receives events and records them
    SERVER = "server"  # receives events from publishers and forwards them
    REPLICATED = "replicated"  # several processes of a region hold the same state
    COORDINATOR = "coordinator"  # decides which processes are replicas; carries no events
    TRANSIENT = "transient"  # may start and stop while others run
    PEER = "peer"  # discovers the others through one peer whose address it is given


Published = Literal["acknowledged", "sent", "sent-then-acknowledged"]
Audience = Literal["all", "topic", "content"]
Since = Literal["beginning", "subscription"]
Order = Literal["none", "publisher", "stream", "total"]
Delivery = Literal["exactly-once", "at-least-once", "at-most-once", "best-effort"]


CHOICES = {
    name: get_args(choices)
    for name, choices in (
        ("published", Published),
        ("audience", Audience),
        ("since", Since),
        ("order", Order),
        ("delivery", Delivery),
    )
}
"""Permitted values of a contract."""
AUDIENCES: Mapping[str, Audience] = {"stream": "all", "topics": "topic", "content": "content"}
"""The audience for each kind of workload, if a system supports several."""


@dataclass(frozen=True, slots=True)
class Contract:
    """Promises of a system: audience, order and repetition of deliveries, and the faults it survives.

    published: what a publisher's record means, that the system has an event or that the event was sent; with
    `sent-then-acknowledged` there is one record for each, and events that were not acknowledged when their
    publisher died may be missing. survives: kinds of faults (`cut`, `kill`…) through which the promise holds;
    None: all kinds. Events published during another fault may be missing. settle_us: how long a publication,
    a subscription or a repaired link may take to have an effect before it counts.
    """

    published: Published = "acknowledged"
    audience: Audience = "all"
    since: Since = "beginning"
    order: Order = "stream"
    delivery: Delivery = "exactly-once"
    survives: tuple[str, ...] | None = None
    settle_us: int = 2_000_000

    def holds_through(self, kind: str) -> bool:
        """Return whether the promise holds through a fault of this kind."""
        return self.survives is None or kind in self.survives


Seen = Literal["clear", "tls", "never"]


@dataclass(frozen=True, slots=True)
class Marked:
    """How packets show the events, which carry markers (`node.core.marker`), of a system of programs.

    seen: in clear text, in TCP connections or UDP datagrams of any port; also in TLS, if programs log the
    keys of their connections; or never, for the reason `why` (encrypted, compressed).
    """

    seen: Seen = "clear"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """A system as plan, run.json and analysis know it. roles: the traits of each, in the order of hosts.

    marked: how packets of a system of programs show events; None if the system has its own messages.
    """

    name: str
    roles: Mapping[str, tuple[str, ...]]
    contract: Contract = field(default_factory=Contract)
    workloads: tuple[str, ...] = ("stream",)
    ports: tuple[str, ...] = ("port",)  # names of the parameters that are ports of its servers
    streams_max: int | None = 1  # per region; None: any number
    marked: Marked | None = None

    def having(self, *traits: str) -> tuple[str, ...]:
        """Return the roles that have any of these traits."""
        assert set(traits) <= set(Trait), traits
        return tuple(role for role, its in self.roles.items() if set(its) & set(traits))

    @property
    def by_host(self) -> bool:
        """Whether clients forward events themselves: some are servers, too, or there is no server.

        Then an event that reached a host need not be delivered there, and paths lead from host to host.
        """
        ends = {Trait.PUBLISHER, Trait.SUBSCRIBER}
        servers = [set(traits) for traits in self.roles.values() if Trait.SERVER in traits]
        return not servers or any(traits & ends for traits in servers)

    @property
    def shows_events(self) -> bool:
        """Whether its packets show events by their markers."""
        return self.marked is not None and self.marked.seen != "never"

    @property
    def logs_keys(self) -> bool:
        """Whether its programs must log the keys of their TLS connections, which show its events."""
        return self.marked is not None and self.marked.seen == "tls"

    def has(self, role: str, *traits: str) -> bool:
        """Return whether a role has any of these traits; False for an unknown role."""
        return bool(set(self.roles.get(role, ())) & set(traits))

    def taking(self, workload: str) -> Self:
        """Return the declaration for one kind of workload, which sets the audience if the system supports
        several.
        """
        if len(self.workloads) < 2:
            return self
        return replace(self, contract=replace(self.contract, audience=AUDIENCES[workload]))

    def problem(self) -> str | None:
        """Return the first error in the declaration, or None."""
        contract = self.contract
        for name, choices in CHOICES.items():
            value = getattr(contract, name)
            if value not in choices:
                return f"contract.{name} should be one of {', '.join(choices)}, not {value!r:.40}"
        if isinstance(contract.survives, str) or contract.settle_us < 0:
            return "contract.survives should list kinds of faults, and contract.settle_us not be negative"
        if contract.audience != "all" and contract.since != "subscription":
            return f"the audience {contract.audience} needs since subscription"
        if "topics" in self.workloads and contract.since != "subscription":
            return "the workload topics needs since subscription"
        for name in (self.name, *self.roles):
            if not NAME.fullmatch(name):
                return f"the name {name!r:.40} should be a letter of a-z, then up to 29 of a-z, 0-9, _ and -"
        takes = (contract.audience, *self.workloads)
        if "content" in takes and takes != ("content",) * 2:
            return "the audience content goes with the workload content, and with no other"
        for role, traits in self.roles.items():
            if unknown := [trait for trait in traits if trait not in set(Trait)]:
                return f"role {role}: {unknown[0]!r:.40} is no trait: there are {', '.join(Trait)}"
        return None

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as it stands in a plan."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """Parse the result of `to_json`. Raises KeyError, TypeError or ValueError on invalid input."""
        contract = {**given["contract"]}
        survives = contract.get("survives")
        contract["survives"] = None if survives is None else tuple(map(str, survives))
        return cls(
            name=str(given["name"]),
            roles={str(role): tuple(map(str, traits)) for role, traits in given["roles"].items()},
            contract=Contract(**contract),
            workloads=tuple(given["workloads"]),
            ports=tuple(given["ports"]),
            streams_max=given.get("streams_max", 1),
            marked=None if (marked := given.get("marked")) is None else Marked(marked["seen"], marked["why"]),
        )


@dataclass(frozen=True, slots=True)
class Reading:
    """How the analysis reads a system's messages and logs. Names are those of its messages on the wire.

    carries: messages that carry events, the usual one first. placeholder: the `kind` of those that replace
    collected events. publish: the message by which a publisher hands over its events and the reply that
    numbers them; the same name twice if the publisher numbers them itself. asks: messages that request
    events. rerouted: requests that a server sends when it changes to another route. noticed: log entries for
    a detected fault. moved: log entry of a server that takes a stream from another one. membership: log
    entries about the set of replicas; the first one lists it completely. routed: messages that carry another
    one to the node responsible for a key. visits: messages that carry an event through the part of a space
    that it affects and to its subscribers; none if events affect no such part. relayed: log entries for the
    start and end of a peer's traffic through a third host. key_of: the key by which messages name a stream or
    its topic instead of its number. heartbeat: a message that only shows that its sender is alive, if it
    lists no counters. ranks: messages that are sent continuously, the least informative first; in diagrams,
    messages that carry events follow them, then all others. colours: of messages in diagrams, by the names of
    `analysis.pages.diagram.canvas`.
    """

    carries: tuple[str, ...] = ()
    placeholder: int | None = None
    publish: tuple[str, str] | None = None
    asks: tuple[str, ...] = ()
    rerouted: tuple[str, ...] = ()
    noticed: tuple[str, ...] = ()
    moved: str = ""
    membership: tuple[str, ...] = ()
    routed: tuple[str, ...] = ()
    visits: tuple[str, ...] = ()
    relayed: tuple[str, ...] = ()
    key_of: Callable[[int], int] | None = None
    heartbeat: str = ""
    ranks: tuple[str, ...] = ()
    colours: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReplyTimeout:
    """How long nodes wait for a reply from any other node before they assume that none will come.

    us: all attempts together. parameter: the name, as in `Parameters`, of the parameter that sets the wait of
    one attempt. is_relayed: a reply may have to come through a third host. A topology with a greater round
    trip is refused (`experiments.checks`).
    """

    parameter: str
    us: int
    attempts: int = 1
    is_relayed: bool = False


Code = Any
"""An object, or a reference to one: "package.module:attribute"."""


@dataclass(frozen=True, slots=True)
class Study:
    """An experiment with very many machines in virtual time, which no plan lists one by one.

    parameters: a dataclass with the defaults. execute: a function of (parameters,
    `node.core.study.StudyContext`). points: parameters of each of the paper's points, for `--all`.
    """

    description: str
    parameters: Any
    execute: Code
    points: tuple[Mapping[str, Any], ...] = ({},)


@dataclass(frozen=True, slots=True)
class System:
    """A system and its code: a dataclass of parameters, a machine for each role, codec, reading.

    report: builds additional sections of its runs' reports, for systems outside Cutset. roles_problem:
    why a region cannot have this number of processes per role, or None. promise: the contract with the given
    complete parameters, if it depends on them; the declared one holds for the defaults. waits: limits on
    round trips with the given parameters. is_durable: whether acknowledged events survive, on disk, a power
    failure of all nodes that have them. studies: experiments with very many machines (`Study`) by name, or a
    reference to them. distributions: installed packages that its nodes import, by their names in package
    indexes; other machines get them together with the code. event_limit_bytes: the largest event; None: no
    limit of its own. promise_limits: parameters that limit the promise, such as retention: beyond them less
    is promised. batching: periods during which outgoing messages accumulate: longer periods mean fewer
    messages. times: microseconds after which processes act, if these derive from several parameters.
    remembers: for how many microseconds a silent subscriber's request is retained; None: without limit.
    copies: how many further servers keep a subscriber's request. All functions take the parameters.
    """

    declared: Declared
    parameters: type
    machines: Mapping[str, Code]
    codec: Code = None
    reading: Code = None
    report: Code = None
    roles_problem: Callable[[Mapping[str, int]], str | None] = lambda _: None
    promise: Callable[[Mapping[str, Any]], Contract] | None = None
    waits: Callable[[Mapping[str, Any]], Iterable[ReplyTimeout]] = lambda _: ()
    is_durable: Callable[[Mapping[str, Any]], bool] = lambda _: False
    studies: Code = None
    distributions: tuple[str, ...] = ()
    event_limit_bytes: Callable[[Mapping[str, Any]], int | None] = lambda _: None
    promise_limits: tuple[str, ...] = ()
    batching: tuple[str, ...] = ()
    times: Callable[[Mapping[str, Any]], Iterable[int]] = lambda _: ()
    remembers: Callable[[Mapping[str, Any]], int | None] = lambda _: None
    copies: Callable[[Mapping[str, Any]], int] = lambda _: 1

    def problem(self) -> str | None:
        """Return the first error in the declaration, or None."""
        if (found := self.declared.problem()) is not None:
            return found
        if not (isinstance(self.parameters, type) and is_dataclass(self.parameters)):
            return f"the parameters should be a dataclass, not {self.parameters!r:.40}"
        if isinstance(self.distributions, str):
            return f"distributions should be a tuple of names, not {self.distributions!r:.40}"
        known = {each.name for each in fields(self.parameters)}
        named_in = {
            "ports": self.declared.ports,
            "promise_limits": self.promise_limits,
            "batching": self.batching,
        }
        for option, named in named_in.items():
            if unknown := [name for name in named if name not in known]:
                return f"{option}: there is no parameter {unknown[0]!r:.40}"
        if unknown := [role for role in self.declared.roles if role not in self.machines]:
            return f"role {unknown[0]} has no machine"
        if self.codec is None:
            return "it has no codec, so its nodes cannot send messages"
        return self._reading_problem()

    def _reading_problem(self) -> str | None:
        """Return why the reading names an unknown message, if codec and reading are given as objects."""
        layouts = getattr(self.codec, "by_name", None)
        if layouts is None or not isinstance(self.reading, Reading):
            return None
        reading, publish = self.reading, self.reading.publish or ()
        named = [*reading.carries, *publish, *reading.asks, *reading.rerouted, *reading.routed]
        named += [*reading.visits, reading.heartbeat, *reading.ranks, *reading.colours]
        if unknown := [name for name in named if name and name not in layouts]:
            return f"reading: the codec has no message {unknown[0]!r:.40}"
        if len(set(publish)) == 2:
            columns = {name: {each.columns[0] for each in layouts[name].fields} for name in publish}
            if lacking := [name for name in publish if "request" not in columns[name]]:
                return f"reading: {lacking[0]} has no column request, which identifies the reply"
        return None
