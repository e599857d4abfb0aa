"""A file that declares a system of programs: the programs of its roles, their needs, and its contract.

The file is validated without a plan; templates are rendered once there is one (`systems.rendering`).
Templates and clients are in the file's own folder.
"""

import re
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
from node.core.program import Need, Readiness, Signal
from topologies.quantities import QuantityError, quantity_of
from topologies.strict import DurationUs, Flag, Name, SizeBytes, StrictModel, WholeNumber, problem, suggestion

ARGUMENTS_MAX = 200
FILES_MAX = 50
ROLES_MAX = 20
GRACE_US_MAX = 15_000_000
"""Shorter than a run waits for the end of all its processes."""
READY_US_MAX = 600_000_000
WorkloadKind = Literal["stream", "topics"]
PROCESSORS_MAX = 4096
STORAGE_BYTES_MIN = 1 << 16
TOLD_BY = {Trait.PUBLISHER, Trait.SUBSCRIBER}
"""Roles with any of these traits are clients: they record the events that they published and received."""


def _as_text(given: Any) -> Any:
    return str(given) if isinstance(given, int | float) and not isinstance(given, bool) else given


Template = Annotated[str, Field(max_length=4096), BeforeValidator(_as_text)]
"""Text with expressions in {{ }}: `address`, `name`, `region`, `index`, `folder`, `peers(role, region)`…"""
Arguments = Annotated[tuple[Template, ...], Field(max_length=ARGUMENTS_MAX)]


class ReadyFile(StrictModel):
    """The conditions for a program to count as ready; all given ones must hold."""

    port: Template = ""
    """The program accepts connections on this port of its own address."""
    line: str = Field("", max_length=500)
    """A regular expression that a line of its output matches."""
    http: Template = ""
    """A URL that answers with a status below 400."""
    command: tuple[Template, ...] = ()
    """A command that exits with code 0; it is repeated until it does."""
    within_us: DurationUs = Field(30_000_000, gt=0, le=READY_US_MAX)
    """The time limit; it is an error if the program takes longer."""

    @field_validator("line")
    @classmethod
    def _check_line(cls, line: str) -> str:
        if "{{" in line:
            raise ValueError(
                "is a regular expression and no template: match the text without {{ }}, as in .*"
            )
        return line


class StopFile(StrictModel):
    """The way to end a program."""

    signal: Signal = "TERM"
    """The signal to all its processes."""
    grace_us: DurationUs = Field(5_000_000, ge=0, le=GRACE_US_MAX)
    """The time until it is killed."""


class LimitsFile(StrictModel):
    """The resource limits of a program."""

    memory_bytes: SizeBytes | None = Field(None, gt=0)
    """The writable memory of each of its processes."""
    processors: WholeNumber | None = Field(None, ge=1, le=PROCESSORS_MAX)
    """The number of processors on which it may run."""
    storage_bytes: SizeBytes | None = Field(None, ge=STORAGE_BYTES_MIN)
    """The size of its /var/lib, which is then a separate file system in memory."""


class RoleFile(StrictModel):
    """The program of a role."""

    traits: tuple[Trait, ...] = ()
    """The functions of the role in a run: publisher, subscriber, server…"""
    image: str = Field("", max_length=4096)
    """An image whose files are its view: a folder or archive, or a reference that skopeo fetches."""
    run: Arguments = ()
    """The program and its arguments; by default the image's."""
    env: Annotated[dict[str, Template], Field(max_length=ARGUMENTS_MAX)] = Field(default_factory=dict)
    """Its environment variables."""
    files: Annotated[dict[str, str], Field(max_length=FILES_MAX)] = Field(default_factory=dict)
    """Files in its folder, or at absolute paths in its image, each with its template beside this file."""
    ready: ReadyFile | None = None
    """When it is ready. With only `within`, a client reports it; other programs are ready when they run."""
    stop: StopFile = Field(default_factory=partial(StopFile.model_validate, {}))
    """How to end it."""
    keeps_storage: Flag = True
    """Whether its /var/lib is kept for its next start."""
    user: str = Field("", max_length=60)
    """The user that it runs as if Cutset runs as root, by default the image's; otherwise all programs run as
    Cutset's user.
    """
    limits: LimitsFile = Field(default_factory=partial(LimitsFile.model_validate, {}))
    """Its resource limits."""

    @model_validator(mode="after")
    def _plain_names(self) -> Self:
        for name in self.files:
            is_in_image = (
                bool(self.image) and re.fullmatch(r"(/[^/]+)+", name) and ".." not in name.split("/")
            )
            if not is_in_image and ("/" in name or name in {"", ".", ".."}):
                also = ", or an absolute path" if self.image else ""
                raise problem(f"should be a file name without folders{also}", "files", name)
        if not self.run and not self.image:
            raise problem("needs a program, or an image that has one", "run")
        return self

    @property
    def is_client(self) -> bool:
        """Whether it uses `cutset_client`."""
        return bool(TOLD_BY & set(self.traits))

    def readiness(self) -> Readiness:
        """Return the readiness conditions as data."""
        ready = self.ready or ReadyFile.model_validate({})
        is_told = self.is_client and not (ready.port or ready.line or ready.http or ready.command)
        return Readiness(ready.port, ready.line, ready.http, ready.command, is_told, ready.within_us)


class NeedFile(StrictModel):
    """A program, a Python module or a package of Node.js that must be installed."""

    program: str = Field("", max_length=200)
    """A program on PATH."""
    module: str = Field("", max_length=200)
    """A Python module that clients import."""
    get: str = Field(max_length=500)
    """The command that installs it."""
    version: Annotated[tuple[str, ...], Field(max_length=ARGUMENTS_MAX)] = ()
    """The command that prints a program's version; for a module, the name of its distribution."""
    package: str = Field("", max_length=200, pattern=r"^(@[\w.-]+/)?\w[\w.-]*$|^$")
    """A package of Node.js, in a node_modules beside this file or above."""
    at_least: str = Field("", max_length=40, pattern=r"^\d+(\.\d+)*$|^$")
    """The minimum version of a program, in quotes: "18.17"."""

    @model_validator(mode="after")
    def _one_kind(self) -> Self:
        if sum(map(bool, (self.program, self.module, self.package))) != 1:
            raise problem("should name one of: program, module, package")
        if self.at_least and not (self.program and self.version):
            raise problem("requires a program with `version`", "at_least")
        return self

    def need(self) -> Need:
        """Return the need as data."""
        if self.program:
            return Need("program", self.program, self.get, self.version, self.at_least)
        if self.package:
            return Need("package", self.package, self.get)
        return Need("module", self.module, self.get, self.version)


class ContractFile(StrictModel):
    """The guarantees of the system: docs/new-system.md."""

    published: Published = "sent"
    """The steps of a publication that a publisher records."""
    audience: Audience = "all"
    """The subscribers that get an event; with several kinds of workloads, it follows from the kind."""
    since: Since = "beginning"
    """The time from which on subscribers get events."""
    order: Order = "none"
    """The order of deliveries."""
    delivery: Delivery = "best-effort"
    """The number of deliveries."""
    survives: tuple[str, ...] | None = None
    """Kinds of faults during which the guarantees hold; all by default."""
    settle_us: DurationUs = Field(2_000_000, ge=0)
    """How long an event may be in flight before it counts as missing."""


class MessagesFile(StrictModel):
    """The visibility of published events in packets, by the markers in their payloads."""

    seen: Seen = "clear"
    """Whether markers can be found in TCP connections and UDP datagrams: in clear text; also in TLS, by keys
    that programs log; or never."""
    why: str = Field("", max_length=200)
    """Why they can never be found: encrypted, compressed…"""

    @model_validator(mode="after")
    def _reason(self) -> Self:
        if (self.seen == "never") != bool(self.why):
            raise problem("should be given if, and only if, seen is never", "why")
        return self


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
    """Its name in plans, hosts and reports."""
    description: str = Field("", max_length=500)
    """One line for lists."""
    roles: Annotated[dict[str, RoleFile], Field(min_length=1, max_length=ROLES_MAX)]
    """Its roles, in the order of hosts."""
    contract: ContractFile = Field(default_factory=partial(ContractFile.model_validate, {}))
    """Its guarantees."""
    workloads: Annotated[tuple[WorkloadKind, ...], Field(min_length=1)] = ("stream",)
    """Kinds of workloads that its clients support: stream, topics, or both."""
    streams_max: WholeNumber | None = Field(None, ge=1)
    """The maximum number of streams of a region; unlimited by default."""
    parameters: dict[str, Flag | WholeNumber | float | str] = Field(default_factory=dict)
    """Parameters that experiments may set, with defaults; templates have them as `parameters`. If a name ends
    with a unit, such as `keep_alive_us`, the default may have a unit as in experiments: 5s.
    """
    ports: tuple[str, ...] = ()
    """The parameters that are ports of its servers."""
    messages: MessagesFile = Field(default_factory=partial(MessagesFile.model_validate, {}))
    """The visibility of events in packets."""
    needs: tuple[NeedFile, ...] = ()
    """Programs, modules and packages that must be installed."""

    @field_validator("parameters")
    @classmethod
    def _in_units(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Convert texts to numbers in the unit at the end of their names."""
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
                raise problem("should be a Python name: letters, digits and _", "parameters", name)
        if "topics" in self.workloads and self.contract.since != "subscription":
            raise problem("topics needs contract.since to be subscription", "workloads")
        if (found := self.declared().problem()) is not None:
            raise problem(found)
        if self.workloads == ("stream",) and self.contract.audience == "topic":
            raise problem("topic goes with the workload topics", "contract", "audience")
        return self

    def declared(self) -> Declared:
        """Return the declaration that plan, run.json and analysis use."""
        contract = Contract(**dict(self.contract))
        if self.workloads == ("topics",):
            contract = replace(contract, audience="topic")
        return Declared(
            self.name,
            {name: tuple(map(str, role.traits)) for name, role in self.roles.items()},
            contract,
            self.workloads,
            self.ports,
            self.streams_max,
            Marked(**dict(self.messages)),
        )
