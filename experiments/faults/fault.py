"""Bases of all kinds of faults.

A fault is one action at a time: on links (`links.py`), on a process (`processes.py`) or on a process's
packets, connections and disk (`environment.py`). Times count from time 0 of the run. Nothing changes after
the drivers have stopped. `testbed.faults.timeline` combines overlapping faults.
"""

from collections.abc import Iterator
from typing import ClassVar, Self

from pydantic import Field, model_validator

from topologies.first_texts import listed
from topologies.model import LinkReference, Topology
from topologies.strict import DurationUs, Name, StrictModel, WholeNumber, problem, suggestion

TIMES_MAX = 1_000_000  # occurrences of a trigger
LINKS_SHOWN = 12


def region_problems(region: str, topology: Topology) -> Iterator[str]:
    """Yield that a topology lacks a region, with the nearest name."""
    if region not in topology.regions:
        yield f"{topology.name} has no region {region}{suggestion(region, topology.regions)}"


def link_text(reference: LinkReference) -> str:
    """Return `r2-r3`, or the link's name."""
    return reference if isinstance(reference, str) else "-".join(reference)


class ExperimentFault(StrictModel):
    """The fields of every fault."""

    kind: ClassVar[str]
    needs_mending: ClassVar[bool] = True
    """Whether a run converges only after the fault has ended."""
    mends: ClassVar[bool] = False
    """Whether it ends a disturbance or adds a process."""
    only_real: ClassVar[str] = ""
    """Why virtual time does not have it; empty if it does."""

    name: Name = ""
    """Its name in reports and expectations; default: its kind and a number."""
    at_us: DurationUs
    """The time at which it happens, from the start of the run."""

    @property
    def target(self) -> str:
        """The target of the fault, as text."""
        raise NotImplementedError

    @property
    def reference(self) -> LinkReference | None:
        """The one link that it acts on; None if it acts on anything else."""
        return None

    @property
    def regions(self) -> tuple[str, ...]:
        """All regions that it names, as checked against the topology."""
        return self.reference if isinstance(self.reference, tuple) else ()

    def problems(self, topology: Topology) -> Iterator[str]:
        """Yield why a topology does not allow it: regions or links are missing."""
        for region in self.regions:
            yield from region_problems(region, topology)
        if self.reference is not None:
            found = [link.name for link in topology.links_at(self.reference)]
            if not found:
                links = topology.links
                near = [link.name for link in links if not {*self.regions}.isdisjoint(link.between)]
                known = near or [link.name for link in links]
                names = listed(known, LINKS_SHOWN)
                yield f"{topology.name} has no link {link_text(self.reference)}: known are {names}"
            elif len(found) > 1:
                yield f"{len(found)} links join {' and '.join(self.regions)}: name one of {', '.join(found)}"


class FaultTrigger(StrictModel):
    """A trigger: a process sends its n-th message of one name."""

    process: str
    """The process that sends it, such as r1/proxy-0."""
    sends: str
    """The message's name, such as FOLLOW (`cutset dissector --format markdown`)."""
    times: WholeNumber = Field(1, ge=1, le=TIMES_MAX)
    """The number of such messages since `at`."""


class TriggeredFault(ExperimentFault):
    """A fault that happens at a time or right after a trigger. With a trigger, only a restore can end it,
    since its start is not known in advance.
    """

    at_us: DurationUs = 0
    """The time at which it happens, from the start of the run; with `when`, the earliest time."""
    when: FaultTrigger | None = None
    """The trigger; only on this machine and in virtual time."""

    @model_validator(mode="after")
    def _at_some_time(self) -> Self:
        if self.when is None and "at_us" not in self.model_fields_set:
            raise problem("is missing: give the time of the fault", "at")
        return self

    @model_validator(mode="after")
    def _ends_at_some_time(self) -> Self:
        if self.when is not None and getattr(self, "for_us", None) is not None:
            raise problem("counts from `at`, and with `when` it begins later: end it by a restore", "for")
        return self


class LastingFault(ExperimentFault):
    """A fault on links that lasts until a restore or for a given time."""

    for_us: DurationUs | None = Field(None, gt=0)
    """How long it lasts; default: until a restore or the end of the run."""
