"""Whatever stands in a capture, nothing crashes, and what must hold holds; see `python -m tests.fuzz`."""

import random
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.fuzz.seeds import seeds
from tests.fuzz.targets import TARGETS

MUTANTS = 60
RUNS = 150


def mutant(content: bytes, chance: random.Random) -> bytes:
    """Return the content with a few bytes changed, removed or doubled."""
    data = bytearray(content)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) + 1)
        match chance.randrange(4):
            case 0:
                data[at : at + 1] = bytes((chance.randrange(256),))
            case 1:
                del data[at : at + chance.randint(1, 40)]
            case 2:
                data[at:at] = data[at : at + chance.randint(1, 40)]
            case _:
                data[at : at + 4] = chance.choice((b"\xff" * 4, bytes(4), b"\x80\0\0\0", b"\0\0\0\x01"))
    return bytes(data)


@pytest.mark.parametrize("target", TARGETS)
def test_seeds_and_all_that_was_ever_found_pass(target: str) -> None:
    for seed in seeds(target):
        TARGETS[target](seed)


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_seeds_pass(target: str) -> None:
    chance = random.Random(target)
    choices = seeds(target)
    for _ in range(MUTANTS if target != "wireshark" else 2):  # which starts a process each time
        TARGETS[target](mutant(chance.choice(choices), chance))


@pytest.mark.skipif(find_spec("atheris") is None, reason="atheris is not there for this machine")
@pytest.mark.slow
def test_the_fuzzer_runs_as_often_as_it_is_asked_to(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.fuzz", "capture", "--runs", str(RUNS), "--seed", "1"]
    command += ["--cache", str(tmp_path)]
    root = Path(__file__).parents[2]
    run = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert f"Done {RUNS} runs" in run.stderr
    assert not list((tmp_path / "capture" / "found").iterdir())
