"""What a contract means for a run: which figures are 0 if it is kept; and how an experiment loosens it.

An experiment may ask less of its system than that promises, never more; what it asks for is said.
"""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from experiments.declared import Contract
from experiments.faults import KIND_NAMES
from topologies.quantities import quantity_of, yaml_name
from topologies.strict import problem, suggestion

FROM_LOOSE_TO_STRICT = {
    "order": ("none", "publisher", "stream", "total"),
    "delivery": ("best-effort", "at-most-once", "at-least-once", "exactly-once"),
}
LOOSER = {"order", "delivery", "survives", "settle_us"}
"""What an experiment may say."""


NEVER_RIGHT = ("events.stray", "events.corrupted", "events.resurrected", "events.published_twice")
"""Figures of summary.json that no contract allows to be anything but 0."""


def breaches(contract: Contract) -> tuple[str, ...]:
    """The figures of summary.json that count what breaks this contract: each is 0 where it is kept.

    `since` and `audience` say who must and who may get what, and `survives` and `settle_us` when, for all of
    these figures alike.
    """
    found = {
        "events.lost": contract.delivery in ("exactly-once", "at-least-once"),
        "events.duplicated": contract.delivery in ("exactly-once", "at-most-once"),
        "events.out_of_order": contract.order != "none",
        "events.unordered_publishers": contract.order == "publisher",
        **dict.fromkeys(NEVER_RIGHT, True),
        "subscriptions.unconfirmed": contract.since == "subscription",
    }
    return tuple(path for path, counts in found.items() if counts)


def loosened(contract: Contract, given: dict[str, Any]) -> Contract:
    """The contract with what an experiment asks for. Raises a problem for what is not looser, or unknown."""
    _check_kinds(contract.survives or (), "the system promises to survive what is no fault")
    known = {yaml_name(field.name): field.name for field in fields(Contract) if field.name in LOOSER}
    changed = contract
    for name, value in given.items():
        if name not in known:
            raise problem(f"cannot be changed{suggestion(name, known)}", name)
        field = known[name]
        asked = _value(name, field, value)
        if not _is_looser(contract, field, asked):
            raise problem("asks for more than the system promises", name)
        changed = replace(changed, **{field: asked})
    return changed


def differences(promised: Contract, asked: Contract) -> list[str]:
    """What of a contract was loosened, in words."""
    return [
        f"{yaml_name(field.name)} {_text(getattr(asked, field.name))} instead of"
        f" {_text(getattr(promised, field.name))}"
        for field in fields(Contract)
        if getattr(promised, field.name) != getattr(asked, field.name)
    ]


def _value(name: str, field: str, value: Any) -> Any:
    if quantity := quantity_of(field):
        return quantity.parse(value)
    if field == "survives":
        kinds = TypeAdapter(tuple[str, ...]).validate_python(value)
        _check_kinds(kinds, "there is no such fault", name)
        return kinds
    try:
        return TypeAdapter(Contract.__annotations__[field]).validate_python(value)
    except ValidationError:
        choices = ", ".join(get_args(Contract.__annotations__[field]))
        raise problem(f"should be one of {choices}, not {value!r:.40}", name) from None


def _check_kinds(kinds: Iterable[str], wrong: str, *path: str) -> None:
    for kind in kinds:
        if kind not in KIND_NAMES:
            raise problem(f"{wrong}, {kind}{suggestion(kind, KIND_NAMES)}", *path)


def _is_looser(contract: Contract, field: str, asked: Any) -> bool:
    promised = getattr(contract, field)
    if field == "survives":
        return promised is None or set(asked) <= set(promised)
    if field == "settle_us":
        return bool(asked >= promised)
    scale = FROM_LOOSE_TO_STRICT[field]
    return scale.index(asked) <= scale.index(promised)


def _text(value: Any) -> str:
    if value is None:
        return "all faults"
    if isinstance(value, tuple):
        return " and ".join(value) or "no fault"
    return f"{value / 1e6:g} s" if isinstance(value, int) else str(value)
