"""`cutset shell`: a running experiment with a prompt to inject faults by hand."""

from pathlib import Path

import click

from testbed.cli.options import ExperimentArguments, experiment_options, no_analyze_option, out_option


@click.command(name="shell")
@experiment_options
@click.option("--with-faults", is_flag=True, help="Inject the experiment's own faults, too.")
@out_option
@no_analyze_option
def command(given: ExperimentArguments, with_faults: bool, out: Path, no_analyze: bool) -> int:
    """Run an experiment's network and nodes, and inject faults by hand at a prompt.

    The prompt is Mininet's (`r0-client-0 ping r3-proxy-0`, `nodes`, `net`, `sh`), with further commands:
    `status`, and the faults of an experiment's file: `cut r2 r3 for 5s`, `restore r2 r3`, `set r0 r1 delay
    80ms loss 1%`, `kill r2/proxy-0`; `help` lists them all. Lines may also come from a pipe or a file.

    The nodes run until you leave with `exit`, `quit` or Ctrl-D, whatever the experiment's `duration`; Ctrl-C
    only interrupts the current command. The experiment's own faults do not happen unless `--with-faults` is
    given (they must then begin within `duration`), and its expectations are not checked. The result is a run
    like any other, with the injected faults in its record, analysis and report.

    Exit codes: 0 the run passed, 1 it did not, 2 bad input, 3 this machine cannot do it, 130 interrupted.
    """
    from experiments.backend_names import LOCAL
    from testbed.campaign.shell_run import run_shell
    from testbed.faults.interactive import ignored_fields

    chosen = given.select(LOCAL, 1, ignored_fields(with_faults=with_faults))
    return run_shell(chosen, out, with_faults=with_faults, analyze=not no_analyze)
