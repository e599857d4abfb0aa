"""`python -m testbed.shell`: the prompt's process inside the sandbox, started by the runner."""

import sys
from pathlib import Path

from experiments.records.rundir import RunDirectory
from testbed.network.mininet_nodes import attached_network
from testbed.sandbox.channel import SandboxChannel
from testbed.shell.prompt import RunnerClient, ShellPrompt, ended_by_signals


def main() -> int:
    """Show the prompt until the user leaves it; return the exit code."""
    runner = RunnerClient(SandboxChannel.inherited())
    with ended_by_signals():
        opening = runner.opening()
        plan = RunDirectory(Path(opening["run"])).read_run().plan
        net = attached_network(plan, opening["pids"])
        try:
            ShellPrompt(net, plan, runner, sys.stdin).talk()
        finally:
            for host in net.hosts:
                host.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
