"""Hashes of what 16 simulated runs of all three systems left, to show that a change keeps every trace.

    .venv/bin/python -m tests.bench.traces >before.txt     # at one commit
    .venv/bin/python -m tests.bench.traces | diff before.txt -

Each line has the run, then SHA-256 digests of its deliveries (what each client got, and when) and of the logs
of all nodes. Names of experiments as arguments select some of the runs.
"""

import hashlib
import sys
import tempfile
from pathlib import Path

from experiments.loader import load_experiment
from testbed.backends.simulator import Simulator, simulate
from testbed.campaign.one_run import ExperimentRunRequest, prepare

HERE = Path(__file__).parent
RUNS = (
    *(("nemesis", seed) for seed in range(1, 5)),
    *(("nemesis-streams", seed) for seed in range(1, 3)),
    (str(HERE / "abilene-cuts.yaml"), 1),
    *(("scribe-nemesis", seed) for seed in range(1, 5)),
    ("scribe-churn", 1),
    *(("meghdoot-nemesis", seed) for seed in range(1, 5)),
)
FOLDERS = ("deliveries", "logs")


def trace(experiment_name: str, seed: int, out: Path) -> dict[str, str]:
    """Simulate a run below `out`; return a digest for each of FOLDERS."""
    experiment = load_experiment(experiment_name)
    request = ExperimentRunRequest.for_experiment(experiment, seed)
    run = prepare(request, Simulator(), out)
    simulate(run, lambda message: None)
    return {name: _digest(Path(run.path) / name) for name in FOLDERS}


def _digest(folder: Path) -> str:
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(folder)).encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def main() -> None:
    """Print a line for each run."""
    asked = sys.argv[1:]
    for name, seed in RUNS:
        if asked and Path(name).stem not in asked:
            continue
        with tempfile.TemporaryDirectory() as folder:
            digests = trace(name, seed, Path(folder))
        said = "  ".join(f"{folder} {digest}" for folder, digest in digests.items())
        sys.stdout.write(f"{Path(name).stem:18} {seed}  {said}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
