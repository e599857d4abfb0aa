"""The effect of a contract on a run: the figures that must be 0, and how an experiment loosens it.

An experiment may require less than its system promises, never more; reports show the difference.
"""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, get_args

from pydantic import TypeAdapter, ValidationError

from experiments.declared import Contract
from experiments.faults.kinds import KINDS
from topologies.quantities import quantity_of, yaml_name
from topologies.strict import problem, suggestion

FROM_LOOSE_TO_STRICT = {
    "order": ("none", "publisher", "stream", "total"),
    "delivery": ("best-effort", "at-most-once", "at-least-once", "exactly-once"),
}
LOOSER = {"order", "delivery", "survives", "settle_us"}
"""The fields that an experiment may set."""


ALWAYS_WRONG_FIGURES = ("events.stray", "events.corrupted", "events.resurrected", "events.published_twice")
"""Figures of summary.json that must be 0 under every contract."""


def breaches(contract: Contract) -> tuple[str, ...]:
    """Return the figures of summary.json that count breaches of this contract; each must be 0.

    For all of them, `since` and `audience` decide who must and who may get an event; `survives` and
    `settle_us` decide when.
    """
    found = {
        "events.lost": contract.delivery in ("exactly-once", "at-least-once"),
        "events.duplicated": contract.delivery in ("exactly-once", "at-most-once"),
        "events.out_of_order": contract.order != "none",
        "events.unordered_publishers": contract.order == "publisher",
        **dict.fromkeys(ALWAYS_WRONG_FIGURES, True),
        "subscriptions.unconfirmed": contract.since == "subscription",
    }
    return tuple(path for path, counts in found.items() if counts)


def loosened(contract: Contract, given: dict[str, Any]) -> Contract:
    """Return the contract with an experiment's changes. Raises a problem if one is stricter or unknown."""
    _check_kinds(contract.survives or (), "the system promises to survive an unknown kind of fault")
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
    """Return the loosened fields of a contract, in words."""
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
        if kind not in KINDS:
            raise problem(f"{wrong}, {kind}{suggestion(kind, list(KINDS))}", *path)


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
