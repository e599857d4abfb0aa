"""`python -m testbed.cli.prompt`: the prompt's process inside the sandbox, started by the runner.

Stands among the commands because one of its words, `packets`, is the analysis' work, which only commands may
use.
"""

import sys
from pathlib import Path

from experiments.rundir import RunDirectory
from testbed.sandbox.channel import Channel
from testbed.shell.prompt import Prompt, RunnerClient, ended_by_signals


def main() -> int:
    """Until somebody leaves the prompt."""
    from testbed.cli.recent import RecentPackets
    from testbed.network.mininet_nodes import attached_network

    runner = RunnerClient(Channel.inherited())
    with ended_by_signals():
        opening = runner.opening()
        run = RunDirectory(Path(opening["run"]))
        plan = run.read_run().plan
        net = attached_network(plan, opening["pids"])
        try:
            Prompt(net, plan, runner, RecentPackets(run), sys.stdin).talk()
        finally:
            for host in net.hosts:
                host.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
