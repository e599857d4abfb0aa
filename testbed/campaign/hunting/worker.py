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
    base = Experiment.model_validate(setup["experiment"])
    if setup["place"] == SIMULATOR:
        from testbed.campaign.hunting.trials import VirtualTimeTrials

        return partial(answer, VirtualTimeTrials(base, setup["build"] or DEFAULT_BUILD))
    from testbed.campaign.hunting.on_processes import ProcessTrials

    return partial(answer, ProcessTrials(base, Path(setup["runs"])))


def answer(trials: Any, request: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a case.

    request: `case`; `do`, a method of the trials, `tried` or in virtual time `confirmed`; for the first also
    `kept_us` and `keep`.
    """
    more = {name: request[name] for name in ("kept_us", "keep") if name in request}
    try:
        result: dict[str, Any] = getattr(trials, request["do"])(case_from_json(request["case"]), **more)
    except (InputError, TestbedError) as error:
        return {"refused": str(error)}
    return result


if __name__ == "__main__":
    serve(begin)
