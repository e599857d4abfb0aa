"""Whether an experiment can be hunted, on which backend, and which faults may occur."""

from experiments.backend_names import LOCAL, SIMULATOR
from experiments.checks import problems
from experiments.declared import Trait, programs_of
from experiments.model import Experiment
from experiments.nemesis import Nemesis
from topologies.errors import InputError
from topologies.loader import load_topology


def default_backend(experiment: Experiment) -> str:
    """Return the default backend: virtual time if the system can run there, otherwise this machine."""
    return SIMULATOR if programs_of(experiment.system) is None else LOCAL


def refuse_unusable(experiment: Experiment, place: str) -> None:
    """Check that an experiment can be hunted on a backend. Raises InputError."""

    def refuse(field: str, message: str) -> None:
        raise InputError(experiment.name, None, field, message)

    if place not in {SIMULATOR, LOCAL}:
        raise InputError("--on", None, "", f"hunts are on {SIMULATOR} or {LOCAL}, not on {place}")
    if place == SIMULATOR and programs_of(experiment.system) is not None:
        refuse("system", f"{experiment.system} is a system of programs, which virtual time does not have")
    if place == SIMULATOR and experiment.traffic:
        refuse("traffic", "is made of real packets, which virtual time does not have")
    for path, message in problems(experiment, load_topology(experiment.topology)):
        refuse(".".join(map(str, path)), message)
    for trait, what in ((Trait.PUBLISHER, "publishes"), (Trait.SUBSCRIBER, "receives events")):
        roles = experiment.declared().having(trait)
        if not any(counts.get(role) for counts in experiment.roles.values() for role in roles):
            refuse("roles", f"no process {what}: a hunt would find only that")
    nemesis = nemesis_of(experiment)
    real = [kind for kind in ("throttle", "memory") if kind in nemesis.kinds]
    if place == SIMULATOR and real:
        refuse("nemesis.kinds", f"{real[0]} is of real processes: leave it out, or hunt --on {LOCAL}")
    if place == SIMULATOR and nemesis.ports:
        refuse("nemesis.ports", f"virtual time knows no ports: leave it out, or hunt --on {LOCAL}")
    if found := nemesis.time_problem(experiment.duration_us):
        refuse("duration", f"{found}: a longer one is needed")


def nemesis_of(experiment: Experiment) -> Nemesis:
    """Return the experiment's nemesis, or the default one."""
    return experiment.nemesis or Nemesis.model_validate({})
