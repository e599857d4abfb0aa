"""A worker that runs the cases of a hunt.

Its setup has `experiment`; `modules` that declare further systems; `build`, the function that makes the
machines; `place`, simulator or local; and `runs`, a folder for runs on real processes.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from experiments.backend_names import SIMULATOR
from experiments.hunting.case import case_from_json
from experiments.model import Experiment
from testbed.campaign.jobs.serving import serve
from testbed.errors import TestbedError
from topologies.errors import InputError

MODULE = "testbed.campaign.hunting.worker"
DEFAULT_BUILD = "node.systems:build_machine"


Actions = Mapping[str, Callable[..., dict[str, Any]]]
"""The actions of a worker on a case, by their names in a request: `try`, and in virtual time `confirm`."""


def begin(setup: dict[str, Any]) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return the function that answers requests."""
    for module in setup["modules"]:
        from experiments.declared import add_module

        add_module(Path(module))
    return partial(answer, actions_at(setup["place"], setup))


def actions_at(place: str, setup: dict[str, Any]) -> Actions:
    """Return the actions on cases at this place. setup: as in the first line."""
    base = Experiment.model_validate(setup["experiment"])
    if place == SIMULATOR:
        from testbed.campaign.hunting.in_virtual_time import VirtualTimeTrials

        trials = VirtualTimeTrials(base, setup["build"] or DEFAULT_BUILD)
        return {"try": trials.tried, "confirm": trials.confirmed}
    from testbed.campaign.hunting.on_processes import ProcessTrials

    return {"try": ProcessTrials(base, Path(setup["runs"])).tried}


def answer(actions: Actions, request: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a case. request: `case`; `do`, an action; for try also `kept_us` and `keep`."""
    case = case_from_json(request["case"])
    more = {name: request[name] for name in ("kept_us", "keep") if name in request}
    try:
        return actions[request["do"]](case, **more)
    except (InputError, TestbedError) as error:
        return {"refused": str(error)}


if __name__ == "__main__":
    serve(begin)
