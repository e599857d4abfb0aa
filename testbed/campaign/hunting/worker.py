"""A process of a hunt: reads cases from stdin, a JSON object per line, and writes a line with each result.

It ends with its input, and leaves nothing behind when it is killed. The first line is the setup:
`experiment`; `modules` that declare further systems; `build`, the function that makes the machines; `place`,
simulator or local; and `runs`, a folder for runs on real processes. It ignores interrupts, because the parent
handles them and ends the workers.
"""

import gc
import json
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

from experiments.backend_names import SIMULATOR
from experiments.hunting.case import case_from_json
from experiments.model import Experiment
from testbed.campaign.hunting.trials import Trials
from testbed.errors import TestbedError
from topologies.errors import InputError

DEFAULT_BUILD = "node.systems:build_machine"


def main() -> None:
    """Serve until the input ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    setup = json.loads(sys.stdin.readline())
    for module in setup["modules"]:
        from experiments.declared import add_module

        add_module(Path(module))
    trials = trials_at(setup["place"], setup)
    gc.collect()
    gc.freeze()  # imported modules need no scan after each case, which leaves cycles behind
    with suppress(KeyboardInterrupt):  # the parent ended a run on real processes
        for line in sys.stdin:
            sys.stdout.write(json.dumps(answer(trials, json.loads(line))) + "\n")
            sys.stdout.flush()


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
    main()
