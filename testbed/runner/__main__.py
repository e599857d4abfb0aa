"""`python -m testbed.runner RUN_DIRECTORY [PROMPT]`: the run inside its sandbox, started by PID 1.

PROMPT is the module that is the prompt's process, for a run that lasts until somebody leaves it.
"""

import asyncio
import sys
from pathlib import Path

from experiments.rundir import RunDirectory
from testbed.runner.conduct import conduct
from testbed.runner.prompt import Prompt, command_of
from testbed.sandbox.channel import Channel


def main() -> int:
    """Returns 0 when the run was collected, however it ended."""
    return 0 if asyncio.run(_conduct(sys.argv[1], *sys.argv[2:])) else 1


async def _conduct(directory: str, prompt: str | None = None) -> bool:
    at_prompt = None if prompt is None else Prompt(command_of(prompt))
    return await conduct(RunDirectory(Path(directory)), Channel.inherited(), at_prompt)


if __name__ == "__main__":
    sys.exit(main())
