"""Hunts that replace a run of a night for some time.

The folder of a hunt stays, and the next night continues the hunt. Its findings count until the folder is
removed, because only the developer knows whether they are fixed.
"""

import time

from experiments.campaigns.campaign import FailureKind
from experiments.campaigns.nights import NightRun
from experiments.hunting.huntable import default_backend
from experiments.hunting.huntdir import HUNTS, HuntDirectory
from testbed.campaign.hunting.hunt import HuntLimits
from testbed.campaign.hunting.start import HuntRequest, hunt
from testbed.campaign.nights.night import Night
from testbed.campaign.run_results import NAMED_MAX, ended
from testbed.sweeps import digest_of, plain
from topologies.first_texts import first_texts

DIGEST_CHARS = 8
SEED = 1
"""The seed of all hunts of nights: a continued hunt keeps its seed."""


def hunt_for(night: Night, run: NightRun, hunt_s: float, began_s: float) -> NightRun:
    """Hunt for `hunt_s` and return the run. Raises InputError, MachineError, KeyboardInterrupt."""
    experiment = night.file.experiments[run.entry].experiment
    name = f"{run.entry}-{digest_of(plain(experiment))[:DIGEST_CHARS]}"
    directory = HuntDirectory(night.directory.runs / HUNTS / name)
    before = directory.progress()
    request = HuntRequest(
        experiment=experiment,
        folder=directory.path,
        limits=HuntLimits(seconds=before.elapsed_s + hunt_s),
        seed=SEED,
        workers=None,
        build=None,
        modules=(),
        words=(experiment.name,),
        place=default_backend(experiment),
    )
    hunt(request)
    return concluded(run, directory, time.monotonic() - began_s)


def concluded(run: NightRun, directory: HuntDirectory, took_s: float) -> NightRun:
    """Return a run that has hunted: it fails if the hunt has findings. Raises InputError."""
    texts = first_texts([str(finding["said"]) for _, finding in directory.found()], NAMED_MAX)
    if not texts:
        return ended(run, took_s, verdict="passed")
    problem = "; ".join([*texts, f"cutset hunt --replay {directory.findings}/…"])
    return ended(run, took_s, FailureKind.EXPECTATION, problem, verdict="failed")
