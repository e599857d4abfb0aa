"""What a system under test says of itself, so that nothing else has to know its names.

`Declared` is plain data: it is copied into the plan and run.json, and whoever plans, watches, checks or draws
a run asks it for *traits* of roles and for the *contract*. `System` is `Declared` with the code that it
names: parameters, machines, codec, reading. Code stands as an object, or as a reference,
"package.module:attribute", which `node.systems` follows when it is needed, so that nothing imports machines
in order to validate a file. A reference is only ever taken from a system that is installed or named by the
user, never from an experiment or from a run directory.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from enum import StrEnum
from typing import Any, Literal, Self, get_args

NAME = re.compile("[a-z][a-z0-9_-]{0,29}", re.ASCII)
"""Of systems and roles: it stands in names of hosts, of files and in commands."""


class Trait(StrEnum):
    """What a role does in a run. A role may have several."""

    PUBLISHER = "publisher"  # publishes the workload's events, and writes down what it published
    SUBSCRIBER = "subscriber"  # takes events, and writes down which
    SERVER = "server"  # takes events from publishers and passes them on to others
    REPLICATED = "replicated"  # several of a region hold the same
    COORDINATOR = "coordinator"  # decides who is a replica; carries no events
    TRANSIENT = "transient"  # may come and go while others run
    PEER = "peer"  # finds the others by itself, through one that it is told of


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
"""What a contract may say."""
AUDIENCES: Mapping[str, Audience] = {"stream": "all", "topics": "topic", "content": "content"}
"""Who gets the events of each kind of workload, where a system takes several."""


@dataclass(frozen=True, slots=True)
class Contract:
    """What a system promises: who gets what, in which order, how often, and through which faults.

    published: what a publisher's record says, that the system has an event or that it was sent; with
    `sent-then-acknowledged` each by a record of its own, and what was not acknowledged when its publisher
    died need not come. survives: kinds of faults (`cut`, `kill`…) through which the promise holds; None:
    any. What is published while another fault acts need not come. settle_us: how long what has been
    published, subscribed or mended may be under way before it counts.
    """

    published: Published = "acknowledged"
    audience: Audience = "all"
    since: Since = "beginning"
    order: Order = "stream"
    delivery: Delivery = "exactly-once"
    survives: tuple[str, ...] | None = None
    settle_us: int = 2_000_000

    def holds_through(self, kind: str) -> bool:
        """Whether a fault of this kind is no excuse."""
        return self.survives is None or kind in self.survives


Seen = Literal["clear", "tls", "never"]


@dataclass(frozen=True, slots=True)
class Marked:
    """How the packets of a system of programs show its events, which carry markers (`node.core.marker`).

    seen: in the clear, in TCP connections or UDP datagrams of any port; there and in TLS, for whose
    connections programs log their keys; or never, for the reason `why` (encrypted, compressed).
    """

    seen: Seen = "clear"
    why: str = ""


@dataclass(frozen=True, slots=True)
class Declared:
    """A system as plan, run.json and analysis know it. roles: the traits of each, in the order of hosts.

    marked: how its packets show events, of a system of programs; None where messages are its own.
    """

    name: str
    roles: Mapping[str, tuple[str, ...]]
    contract: Contract = field(default_factory=Contract)
    workloads: tuple[str, ...] = ("stream",)
    ports: tuple[str, ...] = ("port",)  # names of the parameters that are ports of its servers
    streams_max: int | None = 1  # of a region; None: any number
    marked: Marked | None = None

    def having(self, *traits: str) -> tuple[str, ...]:
        """The roles that have any of these traits."""
        assert set(traits) <= set(Trait), traits
        return tuple(role for role, its in self.roles.items() if set(its) & set(traits))

    @property
    def by_host(self) -> bool:
        """Whether those who take events pass them on themselves.

        Then what came to a host need not be delivered there, and paths lead from host to host.
        """
        return any({Trait.SUBSCRIBER, Trait.SERVER} <= set(traits) for traits in self.roles.values())

    @property
    def shows_events(self) -> bool:
        """Whether its packets show events by their markers."""
        return self.marked is not None and self.marked.seen != "never"

    @property
    def logs_keys(self) -> bool:
        """Whether its programs are to log the keys of their TLS connections, which show its events."""
        return self.marked is not None and self.marked.seen == "tls"

    def has(self, role: str, *traits: str) -> bool:
        """Whether a role has any of these traits; one that the system does not have has none."""
        return bool(set(self.roles.get(role, ())) & set(traits))

    def taking(self, workload: str) -> Self:
        """With a kind of workload; who gets an event follows from it where the system takes several."""
        if len(self.workloads) < 2:
            return self
        return replace(self, contract=replace(self.contract, audience=AUDIENCES[workload]))

    def problem(self) -> str | None:
        """What is wrong with what a system says of itself, or None."""
        contract = self.contract
        for name, choices in CHOICES.items():
            said = getattr(contract, name)
            if said not in choices:
                return f"contract.{name} should be one of {', '.join(choices)}, not {said!r:.40}"
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
        """As it stands in a plan."""
        return asdict(self)

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """The inverse of `to_json`. Raises KeyError, TypeError or ValueError if it is none."""
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

    carries: messages that carry events, the usual one first: they arrive where they came in, and were sent
    where they left. placeholder: the `kind` of those that stand for events which are gone.
    publish: the message by which a publisher hands its events over, and the answer that gives them their
    numbers; the same name twice where the publisher numbers them itself. asks: messages by which one asks for
    events. rerouted: those of them that a server sends when it takes another way. noticed: what logs say when
    a fault was noticed. moved: what logs say when a server takes a stream from another one. membership: what
    logs say about who the replicas are, the first of which says it all. routed: messages that
    carry another one to where a key leads, whoever that is. visits: messages by which an event goes over the
    part of a space that it affects, and to those who asked for it; none where events affect no such part.
    relayed: what logs say when a peer is sent
    everything through another host, and when no more. key_of: the key by which messages name a stream, or
    its topic, that do not say its number. heartbeat: a message that only says that its sender lives, where it
    lists no counters. ranks: messages that are sent all the time, from the least telling to the most; those
    that carry events follow them in diagrams, then all others. colours: of
    messages in diagrams, by the names of `analysis.inspect.diagram.canvas`.
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
class Wait:
    """How long nodes wait for an answer from any other before they act as if there were none.

    us: all attempts together, of which there are so many. parameter: the name of the one that says how long
    an attempt waits, as in `Parameters`. is_relayed: an answer may have to come through a third host. A
    topology with a greater round trip is refused (`experiments.checks`).
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

    parameters: a dataclass with the defaults. carry_out: a function of (parameters,
    `node.core.study.Surroundings`). page: a function of `analysis.pages.study.results.Results` that makes a
    `study_page.Content`.
    """

    description: str
    parameters: Any
    carry_out: Code
    page: Code


def _any_roles(counts: Mapping[str, int]) -> str | None:
    """No region is refused."""
    return None


def _no_waits(parameters: Mapping[str, Any]) -> Iterable[Wait]:
    """Any round trip will do."""
    return ()


def _no_times(parameters: Mapping[str, Any]) -> Iterable[int]:
    return ()


def _one_copy(_: Mapping[str, Any]) -> int:
    return 1


def _for_ever(parameters: Mapping[str, Any]) -> int | None:
    return None


def _any_size(parameters: Mapping[str, Any]) -> int | None:
    return None


def _never(parameters: Mapping[str, Any]) -> bool:
    """Everything is kept in memory alone."""
    return False


@dataclass(frozen=True, slots=True)
class System:
    """A system and its code: a dataclass of parameters, what builds the machine of each role, codec, reading.

    report: what makes the sections that its runs' reports have besides (`analysis.pages.report.sections`).
    roles_problem: why a region cannot have so many processes of each role, or None. promise: the contract
    with these parameters, all of them, where that depends on them; what is declared is that of the defaults.
    waits: with these parameters, what no round trip may be longer than. is_durable: whether, with these
    parameters, what was acknowledged survives that all who have it lose power, on their disks.
    studies: experiments with very many machines (`Study`), by name, or a reference to them. distributions:
    installed packages that its nodes import, by their names in package indexes; other machines get them
    together with the code.
    event_limit_bytes: with these parameters, how large an event may be; None: as large as any.
    promise_limits: parameters that limit what is promised, as how much is kept: beyond them it is less.
    batching: periods in which what is to be sent gathers: the longer they are, the fewer messages there are.
    times: with these parameters, after how many microseconds processes act, where that follows from several.
    remembers: with these parameters, for how many microseconds what a subscriber asked for is remembered
    while nothing comes from it; None: for ever.
    copies: with these parameters, how many servers, besides one, keep what a subscriber asked for.
    """

    declared: Declared
    parameters: type
    machines: Mapping[str, Code]
    codec: Code = None
    reading: Code = None
    report: Code = None
    roles_problem: Callable[[Mapping[str, int]], str | None] = _any_roles
    promise: Callable[[Mapping[str, Any]], Contract] | None = None
    waits: Callable[[Mapping[str, Any]], Iterable[Wait]] = _no_waits
    is_durable: Callable[[Mapping[str, Any]], bool] = _never
    studies: Code = None
    distributions: tuple[str, ...] = ()
    event_limit_bytes: Callable[[Mapping[str, Any]], int | None] = _any_size
    promise_limits: tuple[str, ...] = ()
    batching: tuple[str, ...] = ()
    times: Callable[[Mapping[str, Any]], Iterable[int]] = _no_times
    remembers: Callable[[Mapping[str, Any]], int | None] = _for_ever
    copies: Callable[[Mapping[str, Any]], int] = _one_copy

    def problem(self) -> str | None:
        """What is wrong with the declaration, or None."""
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
        for of, named in named_in.items():
            if unknown := [name for name in named if name not in known]:
                return f"{of}: there is no parameter {unknown[0]!r:.40}"
        if unknown := [role for role in self.declared.roles if role not in self.machines]:
            return f"role {unknown[0]} has no machine"
        if self.codec is None:
            return "it has no codec: its nodes could not say anything"
        return self._reading_problem()

    def _reading_problem(self) -> str | None:
        """Whether the reading names messages that there are, where both stand here as objects."""
        layouts = getattr(self.codec, "by_name", None)
        if layouts is None or not isinstance(self.reading, Reading):
            return None
        reading, publish = self.reading, self.reading.publish or ()
        named = (
            *reading.carries,
            *publish,
            *reading.asks,
            *reading.rerouted,
            *reading.routed,
            *reading.visits,
        )
        named = (*named, reading.heartbeat, *reading.ranks, *reading.colours)
        if unknown := [name for name in named if name and name not in layouts]:
            return f"reading: the codec has no message {unknown[0]!r:.40}"
        if len(set(publish)) == 2:
            columns = {name: {each.columns[0] for each in layouts[name].fields} for name in publish}
            if lacking := [name for name in publish if "request" not in columns[name]]:
                return f"reading: {lacking[0]} has no column request, by which an answer is told from others"
        return None
