"""A synthetic mobile link; `python -m topologies.traces.synthetic` writes its files.

The rate is a mean-reverting random walk, because measured rates of mobile links vary by an order of magnitude
within seconds (Winstein, Sivaraman and Balakrishnan, NSDI 2013, use this model), with pauses without
delivery. Opportunities for single packets occur randomly at the rate. The delay varies, too, and is long
around the pauses.
"""

from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from random import Random

from topologies.trace_files import HEADER, OPPORTUNITY_BYTES

FOLDER = Path(__file__).parent
SECONDS = 60
TICK_MS = 20
PAUSES = ((11.4, 0.9), (33.0, 2.6), (52.2, 1.3))
"""Start and duration of the pauses, in seconds."""
FILES = {"lte-synthetic-down.trace": (6_000_000, 11), "lte-synthetic-up.trace": (2_000_000, 12)}
"""Mean rate, bits/s, and seed."""
DELAY_FILE, DELAY_SEED = "lte-synthetic-delay.csv", 13
SPREAD, RETURN = 0.14, 0.02  # of the rate's logarithm, in each tick


def opportunities_ms(mean_bits_per_s: float, seed: int) -> Iterator[int]:
    """Yield the times at which the link could deliver a packet."""
    chance, deviation, ready = Random(seed), 0.0, 0.0  # noqa: S311  traces, not secrets
    for tick_ms in range(0, SECONDS * 1000, TICK_MS):
        deviation += chance.gauss(0, SPREAD) - RETURN * deviation
        packets = mean_bits_per_s * exp(deviation) * TICK_MS / 1000 / (8 * OPPORTUNITY_BYTES)
        ready += 0.0 if _pauses(tick_ms / 1000) else packets * chance.uniform(0.5, 1.5)
        yield from sorted(tick_ms + chance.randrange(TICK_MS) for _ in range(int(ready)))
        ready -= int(ready)
    yield SECONDS * 1000


def delay_rows() -> Iterator[str]:
    """Yield the lines of the file of delays, a row each half a second."""
    chance, deviation = Random(DELAY_SEED), 0.0  # noqa: S311
    yield "# Synthetic: see README.md"
    yield HEADER
    for half in range(2 * SECONDS):
        deviation += chance.gauss(0, 0.15) - 0.2 * deviation
        near = any(_pauses(half / 2 + ahead) for ahead in (0, 0.5))
        yield f"{half / 2:g},{exp(log(28) + deviation) + (60 if near else 0):.1f}"
    yield f"{SECONDS},"


def _pauses(at_s: float) -> bool:
    return any(start <= at_s < start + long for start, long in PAUSES)


def texts() -> dict[str, str]:
    """Return the content of each file, by its name."""
    found = {
        name: "".join(f"{at_ms}\n" for at_ms in opportunities_ms(*given)) for name, given in FILES.items()
    }
    return found | {DELAY_FILE: "".join(f"{row}\n" for row in delay_rows())}


if __name__ == "__main__":
    for name, text in texts().items():
        (FOLDER / name).write_text(text)
