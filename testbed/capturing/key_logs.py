"""Collection of the TLS connection keys that programs logged, into one file beside the run's captures.

Only its owner can read that file. The programs' own logs are removed, so that the keys are in one place,
which `cutset export` can omit.
"""

import os
from collections.abc import Sequence
from pathlib import Path

from experiments.files.whole_files import replacing
from experiments.planned.plan import Plan
from experiments.records.key_log import KEY_LOG_BYTES_MAX, PRIVATE, key_lines
from experiments.records.rundir import RunDirectory


def collect_key_logs(plan: Plan, run: RunDirectory) -> list[str]:
    """Collect the keys, each line once, if the plan's programs log any; return the problems."""
    if not plan.declared.logs_keys:
        return []
    logs = [path for process in plan.processes for path in run.program_key_logs(process.host)]
    try:
        is_cut_off = _collect(logs, run.key_log)
        for path in logs:
            path.unlink(missing_ok=True)
    except OSError as error:
        return [f"cannot collect the keys of TLS connections: {error}"]
    limit = f"they take more than {KEY_LOG_BYTES_MAX >> 20} MiB"
    return [f"not all keys of TLS connections were kept: {limit}"] if is_cut_off else []


def _collect(logs: Sequence[Path], place: Path) -> bool:
    """Write the lines and return whether some exceeded the limit. Makes no empty file. Raises OSError."""
    lines = dict.fromkeys(line for path in logs for line in key_lines(path))
    if not lines:
        return False
    left = KEY_LOG_BYTES_MAX
    with replacing(place) as file:
        os.fchmod(file.fileno(), PRIVATE)
        for line in lines:
            left -= len(line)
            if left >= 0:
                file.write(line)
    return left < 0
