"""What is said about a sweep while it goes on: a line for each run, the time left."""

from experiments.sweep import SweepRun, values_text
from experiments.sweepdir import PointRecord


def point_line(point: PointRecord, count: int, done: int, left_s: float | None) -> str:
    """What became of a run, in a line."""
    width = len(str(count))
    parts = [point.verdict or point.problem or "ran"]
    rate, latency = (point.headline.get(key) for key in ("events_per_s", "latency_p99_ms"))
    if rate is not None:
        parts.append(f"{rate:,.0f} events/s")
    if latency is not None:
        parts.append(f"p99 {latency:,.0f} ms")
    if point.duration_s is not None:
        parts.append(f"took {duration_text(point.duration_s)}")
    if left_s is not None and done < count:
        parts.append(f"{duration_text(left_s)} left")
    return f"[{done:{width}}/{count}] {point_title(point)}: {', '.join(parts)}"


def point_title(point: PointRecord | SweepRun) -> str:
    """Its values and its seed."""
    return " ".join(filter(None, [values_text(point.values), f"seed {point.seed}"]))


def duration_text(seconds: float) -> str:
    """`12 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.1f} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


def seconds_left(elapsed_s: float, done: int, remaining: int) -> float | None:
    """From what those that are done took, with all that goes on at once; None before the first."""
    return elapsed_s / done * remaining if done else None
