"""A file that declares a system of programs: what runs as each role, what that needs, and what it promises.

Validated as far as the file alone allows; what its templates say is known once there is a plan
(`systems.rendering`). The folder of a file's templates and clients is the file's own.
"""

from dataclasses import replace
from functools import partial
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Field, field_validator, model_validator

from node.core.declaration import (
    Audience,
    Contract,
    Declared,
    Delivery,
    Marked,
    Order,
    Published,
    Seen,
    Since,
    Trait,
)
from node.core.program import Limits, Need, Readiness, Signal, Stopping
from topologies.quantities import QuantityError, quantity_of
from topologies.strict import DurationUs, Flag, Name, SizeBytes, StrictModel, WholeNumber, problem, suggestion

ARGUMENTS_MAX = 200
FILES_MAX = 50
ROLES_MAX = 20
GRACE_US_MAX = 15_000_000
"""Less than a run waits for all its processes to end."""
READY_US_MAX = 120_000_000
WorkloadKind = Literal["stream", "topics"]
PROCESSORS_MAX = 4096
STORAGE_BYTES_MIN = 1 << 16
TOLD_BY = {Trait.PUBLISHER, Trait.SUBSCRIBER}
"""Roles with any of these are clients: they write down what they published and got."""


def _as_text(given: Any) -> Any:
    return str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given


Template = Annotated[str, Field(max_length=4096), BeforeValidator(_as_text)]
"""Text with what stands in {{ }}: `address`, `name`, `region`, `index`, `folder`, `peers(role, region)`…"""
Arguments = Annotated[tuple[Template, ...], Field(min_length=1, max_length=ARGUMENTS_MAX)]


class ReadyFile(StrictModel):
    """When a program counts as ready: all that is given."""

    port: Template = ""
    """It accepts connections on this port of its own address."""
    line: str = Field("", max_length=500)
    """A regular expression that a line of its output matches."""
    http: Template = ""
    """An address that answers with a status below 400."""
    command: tuple[Template, ...] = ()
    """A command that ends with code 0, asked again until it does."""
    within_us: DurationUs = Field(30_000_000, gt=0, le=READY_US_MAX)
    """It is an error if it takes longer."""

    @field_validator("line")
    @classmethod
    def _check_line(cls, line: str) -> str:
        if "{{" in line:
            raise ValueError(
                "is a regular expression and no template: match the text without {{ }}, as in .*"
            )
        return line


class StopFile(StrictModel):
    """How a program is asked to end."""

    signal: Signal = "TERM"
    """Sent to all its processes."""
    grace_us: DurationUs = Field(5_000_000, ge=0, le=GRACE_US_MAX)
    """After that it is killed."""


class LimitsFile(StrictModel):
    """What a program may take."""

    memory_bytes: SizeBytes | None = Field(None, gt=0)
    """Of each of its processes, what it may write to."""
    processors: WholeNumber | None = Field(None, ge=1, le=PROCESSORS_MAX)
    """On so many processors it may run."""
    storage_bytes: SizeBytes | None = Field(None, ge=STORAGE_BYTES_MIN)
    """So large is its /var/lib, which then is a file system of its own, in memory."""


class RoleFile(StrictModel):
    """What runs as a role."""

    traits: tuple[Trait, ...] = ()
    """What the role does in a run: publisher, subscriber, server…"""
    run: Arguments
    """The program and its arguments."""
    env: Annotated[dict[str, Template], Field(max_length=ARGUMENTS_MAX)] = Field(default_factory=dict)
    """Variables of its environment."""
    files: Annotated[dict[str, str], Field(max_length=FILES_MAX)] = Field(default_factory=dict)
    """Files in its folder, each with the template beside this file that it is made of."""
    ready: ReadyFile | None = None
    """When it is ready. With `within` alone a client says so itself; other programs are when they run."""
    stop: StopFile = Field(default_factory=partial(StopFile.model_validate, {}))
    """How it is asked to end."""
    keeps_storage: Flag = True
    """Whether what it leaves in /var/lib is there at its next start."""
    user: str = Field("", max_length=60)
    """On whose behalf it runs, where Cutset runs as root; as an ordinary user all run on that one's."""
    limits: LimitsFile = Field(default_factory=partial(LimitsFile.model_validate, {}))
    """What it may take."""

    @model_validator(mode="after")
    def _plain_names(self) -> Self:
        for name in self.files:
            if "/" in name or name in {"", ".", ".."}:
                raise problem("should be a file's name, without folders", "files", name)
        return self

    @property
    def is_client(self) -> bool:
        """Whether it speaks with `cutset_client`."""
        return bool(TOLD_BY & set(self.traits))

    def readiness(self) -> Readiness:
        """When it is ready, as data."""
        ready = self.ready or ReadyFile.model_validate({})
        is_told = self.is_client and not (ready.port or ready.line or ready.http or ready.command)
        return Readiness(ready.port, ready.line, ready.http, ready.command, is_told, ready.within_us)

    def stopping(self) -> Stopping:
        """How it ends, as data."""
        return Stopping(self.stop.signal, self.stop.grace_us)

    def limited(self) -> Limits:
        """What it may take, as data."""
        limits = self.limits
        return Limits(limits.memory_bytes, limits.processors, limits.storage_bytes)


class NeedFile(StrictModel):
    """A program, a Python module or a package of Node.js that has to be there."""

    program: str = Field("", max_length=200)
    """A program that is found on PATH."""
    module: str = Field("", max_length=200)
    """A Python module that clients import."""
    get: str = Field(max_length=500)
    """How to get it: a command."""
    version: Annotated[tuple[str, ...], Field(max_length=ARGUMENTS_MAX)] = ()
    """The command that prints a program's version; the distribution's name, of a module."""
    package: str = Field("", max_length=200, pattern=r"^(@[\w.-]+/)?\w[\w.-]*$|^$")
    """A package of Node.js, in a node_modules beside this file or above."""
    at_least: str = Field("", max_length=40, pattern=r"^\d+(\.\d+)*$|^$")
    """The version of a program that is needed, in quotes: "18.17"."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(map(bool, (self.program, self.module, self.package))) != 1:
            raise problem("should name one of: program, module, package")
        if self.at_least and not (self.program and self.version):
            raise problem("should be given where a program's version is", "at_least")
        return self

    def need(self) -> Need:
        """As data."""
        if self.program:
            return Need("program", self.program, self.get, self.version, self.at_least)
        if self.package:
            return Need("package", self.package, self.get)
        return Need("module", self.module, self.get, self.version)


class ContractFile(StrictModel):
    """What the system promises: docs/new-system.md."""

    published: Published = "sent"
    """What a publisher's record says."""
    audience: Audience = "all"
    """Who gets an event; where clients take several kinds of workloads, that follows from the kind."""
    since: Since = "beginning"
    """From when on."""
    order: Order = "none"
    """In which order."""
    delivery: Delivery = "best-effort"
    """How often."""
    survives: tuple[str, ...] | None = None
    """Kinds of faults through which it holds; all unless given."""
    settle_us: DurationUs = Field(2_000_000, ge=0)
    """How long something may be under way before it counts."""

    def contract(self) -> Contract:
        """As data."""
        return Contract(**self.model_dump())


class MessagesFile(StrictModel):
    """How packets show the events that clients published: their markers are searched for."""

    seen: Seen = "clear"
    """Whether they can be found in TCP connections and UDP datagrams: as they are; also in TLS, by keys that
    programs log; or never."""
    why: str = Field("", max_length=200)
    """Why they never can: encrypted, compressed…"""

    @model_validator(mode="after")
    def _reason(self) -> Self:
        if (self.seen == "never") != bool(self.why):
            raise problem("should be given where seen is never, and nowhere else", "why")
        return self

    def marked(self) -> Marked:
        """As data."""
        return Marked(self.seen, self.why)


def _in_unit(name: str, value: Any) -> Any:
    quantity = quantity_of(name)
    if quantity is None or not isinstance(value, str):
        return value
    try:
        return quantity.parse(value)
    except QuantityError as error:
        raise problem(f"{error} (the name ends with its unit)", name) from None


class SystemFile(StrictModel):
    """A system of programs."""

    name: Name
    """What it is called in plans, hosts and reports."""
    description: str = Field("", max_length=500)
    """One line for lists."""
    roles: Annotated[dict[str, RoleFile], Field(min_length=1, max_length=ROLES_MAX)]
    """What runs, in the order of hosts."""
    contract: ContractFile = Field(default_factory=partial(ContractFile.model_validate, {}))
    """What it promises."""
    workloads: Annotated[tuple[WorkloadKind, ...], Field(min_length=1)] = ("stream",)
    """Kinds of workloads that its clients take: stream, topics, or both."""
    streams_max: WholeNumber | None = Field(None, ge=1)
    """How many streams a region may have; any number unless given."""
    parameters: dict[str, Flag | WholeNumber | float | str] = Field(default_factory=dict)
    """What experiments may set, with defaults; templates have them as `parameters`. Where a name ends with
    a unit, as `keep_alive_us`, the default may be written as experiments write it: 5s.
    """
    ports: tuple[str, ...] = ()
    """The parameters that are ports of its servers."""
    messages: MessagesFile = Field(default_factory=partial(MessagesFile.model_validate, {}))
    """How packets show events."""
    needs: tuple[NeedFile, ...] = ()
    """Programs, modules and packages that have to be there."""

    @field_validator("parameters")
    @classmethod
    def _in_units(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Texts as numbers of the unit that their names end with."""
        return {name: _in_unit(name, value) for name, value in given.items()}

    @model_validator(mode="after")
    def _declares(self) -> Self:
        for number, port in enumerate(self.ports):
            if port not in self.parameters:
                raise problem(
                    f"there is no parameter {port}{suggestion(port, self.parameters)}", "ports", number
                )
        for name in self.parameters:
            if not name.isidentifier():
                raise problem("should be a name as in Python: letters, digits and _", "parameters", name)
        if "topics" in self.workloads and self.contract.since != "subscription":
            raise problem("topics needs contract.since to be subscription", "workloads")
        if (found := self.declared().problem()) is not None:
            raise problem(found)
        if self.workloads == ("stream",) and self.contract.audience == "topic":
            raise problem("topic goes with the workload topics", "contract", "audience")
        return self

    def declared(self) -> Declared:
        """What plan, run.json and analysis know of it."""
        contract = self.contract.contract()
        if self.workloads == ("topics",):
            contract = replace(contract, audience="topic")
        return Declared(
            self.name,
            {name: tuple(map(str, role.traits)) for name, role in self.roles.items()},
            contract,
            self.workloads,
            self.ports,
            self.streams_max,
            self.messages.marked(),
        )
