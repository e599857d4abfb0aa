"""`cutset history prune`: removes what does not fit, and says what went."""

from collections import defaultdict
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from analysis.history import History


def prune(history: "History", budget_bytes: int, *, dry: bool) -> bool:
    """Returns whether it fits now, or would. dry: only show it. Raises InputError if something cannot go."""
    from analysis.history.pruning import PARTS, plan_pruning, remove
    from topologies.errors import InputError

    plan = plan_pruning(history, budget_bytes)
    for problem in plan.untouched:
        click.echo(f"cutset: {problem}: left as it is", err=True)
    sums: dict[str, int] = defaultdict(int)
    for removal in plan.removals:
        if not dry:
            try:
                remove(removal)
            except OSError as error:
                raise InputError(
                    str(removal.run.path), None, "", f"its {removal.part} cannot be removed: {error.strerror}"
                ) from None
        sums[removal.part] += removal.bytes
        click.echo(f"{removal.run.name}: {removal.part} ({size(removal.bytes)})")
    parts = ", ".join(f"{part} {size(sums[part])}" for part in PARTS if sums[part])
    verb = "would go" if dry else "went"
    click.echo(f"{verb}: {parts or 'nothing'}")
    click.echo(f"{'would stay' if dry else 'stays'}: {size(plan.after)} of {size(plan.before)}")
    if plan.after > budget_bytes:
        click.echo(f"cutset: no more may go: what stays takes more than {size(budget_bytes)}", err=True)
    return plan.after <= budget_bytes


def size(count: float) -> str:
    """Bytes with three digits and a unit, as `1.58 GB`."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1000
    return f"{count:,.3g} TB" if count < 999.5 else f"{count:,.0f} TB"
