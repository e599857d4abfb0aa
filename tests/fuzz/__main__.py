"""`make fuzz`: let a coverage-guided fuzzer search for input that makes a reader of untrusted files fail.

    python -m tests.fuzz TARGET --seconds 60

The targets are those of `tests.fuzz.targets`. `.cache/fuzz/` keeps the corpus of a target, so that the next
run continues from there. Input that makes the target fail, hang or grow is also written there; move it to
`tests/fuzz/found/TARGET/` under a name that describes the defect, and every run of the tests replays it.
"""

import argparse
import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["analysis", "experiments", "node", "testbed", "topologies"]):
    from tests.fuzz.targets import TARGETS

from tests.fuzz.seeds import seeds

CACHE = Path(".cache/fuzz")
INPUT_BYTES_MAX = 8_192
HANG_S = 20
MEMORY_MB_MAX = 1_500


def main() -> None:
    """Run one target; ends the process with libFuzzer's exit code, which is not 0 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__.splitlines()[0])
    parser.add_argument("target", choices=TARGETS)
    parser.add_argument("--seconds", type=int, default=60, help="at most; 0 is no limit")
    parser.add_argument("--runs", type=int, default=-1, help="at most; -1 is no limit")
    parser.add_argument("--seed", type=int, default=0, help="of what is tried; 0 is another each time")
    parser.add_argument("--cache", type=Path, default=CACHE, help="where to keep what was learned and found")
    asked = parser.parse_args()
    learned, found = asked.cache / asked.target / "learned", asked.cache / asked.target / "found"
    for folder in (learned, found):
        folder.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(seeds(asked.target)):
        (learned / f"seed-{number:03}").write_bytes(seed)
    options = {
        "max_total_time": asked.seconds,
        "runs": asked.runs,
        "seed": asked.seed,
        "max_len": INPUT_BYTES_MAX,
        "timeout": HANG_S,
        "report_slow_units": HANG_S,
        "rss_limit_mb": MEMORY_MB_MAX,
        "artifact_prefix": f"{found}/",
    }
    arguments = [f"-{name}={value}" for name, value in options.items()]
    atheris.Setup([sys.argv[0], *arguments, str(learned)], TARGETS[asked.target])
    atheris.Fuzz()


if __name__ == "__main__":
    main()
