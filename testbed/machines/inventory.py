"""An inventory: the machines that a run may use, in a YAML file.

    inventory: lab
    user: cutset                       # user, key, port, folder and takes are defaults for all machines
    key: ~/.ssh/id_ed25519
    folder: /var/tmp/cutset
    machines:
      - {name: h0, control: 192.168.56.10, experiment: 10.10.1.10, serves: [r0]}
      - {name: h1, control: 192.168.56.11, experiment: 10.10.1.11}

`control` is the name or address for SSH, `experiment` the machine's address in the network that carries the
links between regions. There are no passwords, only keys and the agent.
"""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, Field, WithJsonSchema, model_validator

from experiments.records.rundir import RunDirectory
from topologies.document import read_document, validated
from topologies.json_schema import schema_of
from topologies.strict import DurationUs, Name, RateBitsPerS, SizeBytes, StrictModel, WholeNumber, problem

FOLDER = "/var/tmp/cutset"  # noqa: S108 (survives a reboot; the folder is checked to be ours)
VXLAN_PORT = 4789  # RFC 7348, section 5
LEASE_US = 60_000_000
LEASE_US_MIN = 5_000_000
TAKES = 16
MACHINES_MAX = 250

_ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9.:_-]*")
_FINGERPRINT = re.compile(r"SHA256:[A-Za-z0-9+/]{43}")
_PATH = re.compile(r"(/(?!\.\.(/|$))[A-Za-z0-9._-]+)+")


class Shaping(StrEnum):
    """The emulator of links between machines: our link emulators on them, or the site's links."""

    HOSTS = "hosts"
    EMULAB = "emulab"


class ShippingTime(StrEnum):
    """The time of shipping: during the run, or after it."""

    DURING = "during"
    END = "end"


def _ipv4(text: str) -> str:
    try:
        return str(IPv4Address(text))
    except ValueError:
        raise problem(f"{text!r:.40} is not an IPv4 address, such as 10.10.1.10") from None


def _matching(pattern: re.Pattern[str], wanted: str) -> AfterValidator:
    """Return a validator of texts that match the pattern."""

    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise problem(f"{text!r:.60} is not {wanted}")
        return text

    return AfterValidator(check)


def _written(pattern: re.Pattern[str]) -> WithJsonSchema:
    """Return a pattern's JSON schema, for editors."""
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern.pattern}$"})


_Address = Annotated[str, AfterValidator(_ipv4), WithJsonSchema({"type": "string", "format": "ipv4"})]
_Control = Annotated[str, _matching(_ADDRESS, "a host name or address"), _written(_ADDRESS)]
_Fingerprint = Annotated[
    str,
    _matching(_FINGERPRINT, "a fingerprint: `ssh-keygen -lf FILE.pub` prints one, as SHA256:…"),
    _written(_FINGERPRINT),
]
_Port = Annotated[WholeNumber, Field(ge=1, le=65_535)]
_Folder = Annotated[str, _matching(_PATH, f"a plain absolute path, such as {FOLDER}"), _written(_PATH)]
_Count = Annotated[WholeNumber, Field(ge=1, le=10_000)]


class _Machine(StrictModel):
    name: Name
    """Its name in tables and in the run."""
    control: _Control
    """Its name or address for SSH: a name of ssh_config(5), a host name or an address."""
    experiment: _Address | None = None
    """Its address in the network that all machines share for the experiment."""
    links: Mapping[str, _Address] = Field(default_factory=dict)
    """Its addresses by WAN link, if each link is its own network."""
    host_key: _Fingerprint | None = None
    """The fingerprint of its host key; by default as in ~/.ssh/known_hosts."""
    serves: tuple[str, ...] = ()
    """Regions; those that no machine names are spread over the machines that name none."""
    user: str | None = None
    """The user for the login: root, or a user who may use sudo without a password."""
    key: str | None = None
    """A private key; the agent's and the usual ones are tried as well."""
    port: _Port | None = None
    """The port of SSH."""
    folder: _Folder | None = None
    """The only folder that we write to."""
    takes: _Count | None = None
    """The maximum number of its node processes."""

    @model_validator(mode="after")
    def _has_addresses(self) -> Self:
        if self.experiment is None and not self.links:
            raise problem("needs an address in the experiment network", "experiment")
        return self


class Shipping(StrictModel):
    """The time of shipping, and the limits of rate and disk."""

    when: ShippingTime = ShippingTime.DURING
    """during: from the first packet on; end: after the run."""
    rate_bits_per_s: RateBitsPerS | None = None
    """The maximum rate of all machines together; unlimited by default."""
    disk_bytes: SizeBytes | None = None
    """The maximum size of a run's files here."""


class _Inventory(StrictModel):
    inventory: Name
    """Its name."""
    machines: Annotated[list[_Machine], Field(min_length=1, max_length=MACHINES_MAX)]
    """The machines; the clock of the one with the plan's first host is the run's."""
    user: str | None = None
    """The default user for the login; else that of ssh_config(5), or the current user."""
    key: str | None = None
    """The default private key."""
    port: _Port | None = None
    """The default port of SSH; else that of ssh_config(5), or 22."""
    folder: _Folder = FOLDER
    """The default folder, the only one that we write to."""
    takes: _Count = TAKES
    """The default maximum number of node processes of a machine."""
    lease_us: DurationUs = Field(LEASE_US, ge=LEASE_US_MIN)
    """A machine without messages from the controller for this time ends its part of the run in order."""
    shaping: Shaping = Shaping.HOSTS
    """hosts: we shape on the machines; emulab: the site's links do, and we only cut."""
    vxlan_port: _Port = VXLAN_PORT
    """UDP port of the tunnels between machines."""
    shipping: Shipping = Field(default_factory=Shipping)
    """When and how fast captures are shipped."""

    @model_validator(mode="after")
    def _is_without_doubles(self) -> Self:
        for name, value in (("name", "name"), ("experiment", "address")):
            values = [getattr(machine, name) for machine in self.machines]
            for number, given in enumerate(values):
                if given is not None and Counter(values[:number])[given]:
                    raise problem(f"another machine has the {value} {given}", "machines", number, name)
        reached: dict[tuple[str, int | None], str] = {}
        for number, machine in enumerate(self.machines):  # ports distinguish machines behind one address
            other = reached.setdefault((machine.control, machine.port or self.port), machine.name)
            if other != machine.name:
                text = f"{other} has the same address, {machine.control}: it would be the same machine"
                raise problem(text, "machines", number, "control")
        return self


@dataclass(frozen=True, slots=True)
class InventoryMachine:
    """A machine, with the inventory's defaults filled in."""

    name: str
    control: str
    port: int | None  # None: that of ssh_config(5), or 22
    user: str | None
    key: Path | None
    host_key: str | None  # "SHA256:…"; None: as in known_hosts
    experiment: str | None
    links: Mapping[str, str]
    serves: tuple[str, ...]
    takes: int
    folder: str

    def address(self, link: str) -> str | None:
        """Return the machine's address in the experiment network, for this WAN link."""
        return self.links.get(link, self.experiment)

    @property
    def addresses(self) -> list[str]:
        """All its addresses in the experiment network."""
        found = [self.experiment, *self.links.values()]
        return list(dict.fromkeys(address for address in found if address is not None))

    @property
    def runs(self) -> str:
        """The folder on the machine that has a folder for each run."""
        return f"{self.folder}/runs"

    def run_folder(self, run: RunDirectory) -> str:
        """Return the folder on the machine of one run."""
        return f"{self.runs}/{run.full_name}"

    @property
    def code(self) -> str:
        """The folder on the machine that has a folder for each deployed archive."""
        return f"{self.folder}/code"


@dataclass(frozen=True, slots=True)
class Inventory:
    """The machines that a run may use."""

    name: str
    file: str  # as errors name it
    machines: tuple[InventoryMachine, ...]
    lease_us: int
    shaping: Shaping
    vxlan_port: int
    shipping: Shipping


def load_inventory(path: Path) -> Inventory:
    """Read the inventory in a file. Raises InputError with file, line and field."""
    document = read_document(path)
    given = validated(_Inventory, document)
    return Inventory(
        name=given.inventory,
        file=document.file,
        machines=tuple(_machine(machine, given) for machine in given.machines),
        lease_us=given.lease_us,
        shaping=given.shaping,
        vxlan_port=given.vxlan_port,
        shipping=given.shipping,
    )


def inventory_schema() -> dict[str, Any]:
    """Return the JSON schema of an inventory's file."""
    return schema_of(_Inventory)


def _machine(given: _Machine, common: _Inventory) -> InventoryMachine:
    """Return the machine, with the inventory's values for fields that it does not have."""
    own = {name: value for name in _Machine.model_fields if (value := getattr(given, name)) is not None}
    fields: dict[str, Any] = dict.fromkeys(_Machine.model_fields)
    fields |= {name: getattr(common, name) for name in ("port", "user", "key", "takes", "folder")} | own
    if fields["key"] is not None:
        fields["key"] = Path(fields["key"]).expanduser()
    return InventoryMachine(**fields)
