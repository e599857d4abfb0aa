"""All kinds of faults, and the list of faults of an experiment: each has one kind and a unique name."""

import importlib
import pkgutil
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag

from experiments import faults as folder
from experiments.faults.fault import ExperimentFault
from topologies.strict import problem, suggestion

FAULTS_MAX = 1_000


def _collected() -> dict[str, type[ExperimentFault]]:
    """Return the classes in this folder that have a `kind`, by its name."""
    found: dict[str, type[ExperimentFault]] = {}
    for info in pkgutil.iter_modules(folder.__path__, f"{folder.__name__}."):
        if info.name != __name__:
            for each in vars(importlib.import_module(info.name)).values():
                if isinstance(each, type) and issubclass(each, ExperimentFault) and "kind" in vars(each):
                    found[each.kind] = each
    return dict(sorted(found.items()))


KINDS = _collected()


def kind_named(name: str) -> type[ExperimentFault]:
    """Return the kind of this name; for the kinds of a newer version, the base of all."""
    return KINDS.get(name, ExperimentFault)


def _kinds_given(given: Any) -> list[str]:
    return [kind for kind in KINDS if kind in given] if isinstance(given, dict) else []


def _one_action(given: Any) -> Any:
    if isinstance(given, ExperimentFault):
        return given
    if not isinstance(given, dict):
        raise problem(f"should be a mapping such as {{at: 19s, cut: [r2, r3]}}, not {given!r:.40}")
    kinds = _kinds_given(given)
    if len(kinds) > 1:
        raise problem(f"is both {kinds[0]} and {kinds[1]}: make two faults of it")
    if not kinds:
        known_fields = {field.alias for kind in KINDS.values() for field in kind.model_fields.values()}
        stray = next((name for name in given if name not in known_fields), None)
        if stray is None:
            raise problem(f"has no action: give one of {', '.join(KINDS)}")
        raise problem(f"unknown field{suggestion(stray, list(KINDS))}", stray)
    return given


def _tag(given: Any) -> str:
    return f"<{given.kind if isinstance(given, ExperimentFault) else _kinds_given(given)[0]}>"


if TYPE_CHECKING:
    _Kinds = ExperimentFault
else:
    _Kinds = reduce(or_, (Annotated[kind, Tag(f"<{name}>")] for name, kind in KINDS.items()))

AnyFault = Annotated[_Kinds, Discriminator(_tag), BeforeValidator(_one_action)]


def _named(faults: Sequence[ExperimentFault]) -> tuple[ExperimentFault, ...]:
    """Give each fault a unique name: its own, or its kind and its number among those of its kind."""
    named: list[ExperimentFault] = []
    numbers: Counter[str] = Counter()
    first_of: dict[str, int] = {}
    for index, fault in enumerate(faults):
        numbers[fault.kind] += 1
        name = fault.name or _own_name(fault.kind, numbers[fault.kind])
        if name in first_of:
            raise problem(f"the name {name} is taken by faults.{first_of[name]}", index, "name")
        first_of[name] = index
        named.append(fault.model_copy(update={"name": name}))
    return tuple(named)


def _own_name(kind: str, number: int) -> str:
    return f"{kind}-{number}"


def path_to(index: int, faults: Sequence[ExperimentFault]) -> str:
    """Return the path of the fault for `--set`: `faults.cut`, or `faults.0` without a name in the file."""
    fault = faults[index]
    number = sum(other.kind == fault.kind for other in faults[: index + 1])
    return f"faults.{index if fault.name == _own_name(fault.kind, number) else fault.name}"


Faults = Annotated[tuple[AnyFault, ...], Field(max_length=FAULTS_MAX), AfterValidator(_named)]
