"""`python -m testbed.runner RUN_DIRECTORY`: the run inside its sandbox, started by PID 1."""

import asyncio
import sys
from pathlib import Path

from experiments.rundir import RunDirectory
from testbed.runner.conduct import conduct
from testbed.sandbox.channel import Channel


def main() -> int:
    """Returns 0 when the run was collected, however it ended."""
    return 0 if asyncio.run(conduct(RunDirectory(Path(sys.argv[1])), Channel.inherited())) else 1


if __name__ == "__main__":
    sys.exit(main())
