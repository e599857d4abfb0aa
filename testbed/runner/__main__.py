"""`python -m testbed.runner RUN_DIRECTORY [PROMPT]`: the run inside its sandbox, started by PID 1.

PROMPT is the module of the prompt's process, for an interactive run, which lasts until the user leaves the
prompt.
"""

import asyncio
import sys
from pathlib import Path

from experiments.child_python import python_command
from experiments.records.rundir import RunDirectory
from testbed.runner.conduct import conduct
from testbed.runner.prompt_process import PromptProcess
from testbed.sandbox.channel import SandboxChannel


def main() -> int:
    """Run and return 0 if the run was collected, however it ended."""
    return 0 if asyncio.run(_conduct(sys.argv[1], *sys.argv[2:])) else 1


async def _conduct(directory: str, module: str | None = None) -> bool:
    run, channel = RunDirectory(Path(directory)), SandboxChannel.inherited()
    channel.show_life()
    if module is None:
        return await conduct(run, channel)
    # Only a prompt's runner parses injected faults, and the modules for that are slow to import.
    from testbed.runner.prompt_session import PromptSession  # noqa: PLC0415

    prompt = PromptProcess(python_command(module))
    return await conduct(run, channel, prompt, PromptSession(prompt).until_left)


if __name__ == "__main__":
    sys.exit(main())
