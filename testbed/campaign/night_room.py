"""Keeps what nights leave within a disk budget while they go on."""

from testbed.campaign.night import Night
from topologies.errors import InputError


def make_room(night: Night, keep_bytes: int | None, *, say_all: bool = False) -> None:
    """Remove old captures, then more, until the history's runs take no more than this; None: never.

    What could not be removed, or does not fit even so, is said and does not end the night. say_all: also say
    which directories stay as they are, because they cannot be read.
    """
    from analysis.history.pruning import plan_pruning, remove

    if keep_bytes is None:
        return
    with night.going_on("no room was made on the disk"):
        plan = plan_pruning(night.history, keep_bytes)
        for removal in plan.removals:
            try:
                remove(removal)
            except (InputError, OSError) as error:
                night.say(f"problem: {removal.run.name}: its {removal.part} were not removed: {error}")
            else:
                night.log(f"{removal.run.name}: {removal.part} removed, {removal.bytes >> 20} MiB")
        for problem in plan.untouched if say_all else ():
            night.say(f"problem: nothing of it goes for --keep: {problem}")
        if plan.after > keep_bytes:
            night.say(f"problem: the runs take {plan.after >> 20} MiB, more than --keep allows")
