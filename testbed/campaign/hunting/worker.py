"""A worker that runs the cases of a hunt.

Its setup has `experiment`; `modules` that declare further systems; `build`, the function that makes the
machines; `place`, simulator or local; and `runs`, a folder for runs on real processes.
"""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from experiments.backend_names import SIMULATOR
from experiments.hunting.case import case_from_json
from experiments.model import Experiment
from testbed.campaign.hunting.trials import Trials
from testbed.campaign.jobs.serving import serve
from testbed.errors import TestbedError
from topologies.errors import InputError

MODULE = "testbed.campaign.hunting.worker"
DEFAULT_BUILD = "node.systems:build_machine"


def begin(setup: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the function that answers requests."""
    for module in setup["modules"]:
        from experiments.declared import add_module

        add_module(Path(module))
    return partial(answer, trials_at(setup["place"], setup))


def trials_at(place: str, setup: dict[str, Any]) -> Trials:
    """Return the object that runs cases at this place. setup: as in the first line."""
    base = Experiment.model_validate(setup["experiment"])
    if place == SIMULATOR:
        from testbed.campaign.hunting.in_virtual_time import VirtualTimeTrials

        return VirtualTimeTrials(base, setup["build"] or DEFAULT_BUILD)
    from testbed.campaign.hunting.on_processes import ProcessTrials

    return ProcessTrials(base, Path(setup["runs"]))


def answer(trials: Trials, request: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a case. request: `case`; `do`, try or confirm; for try `kept_us` and `keep`."""
    case = case_from_json(request["case"])
    try:
        if request["do"] == "confirm":
            return trials.confirmed(case)
        return trials.tried(case, request.get("kept_us"), keep=request.get("keep", False))
    except (InputError, TestbedError) as error:
        return {"refused": str(error)}


if __name__ == "__main__":
    serve(begin)
