"""`cutset verify`: whether figures follow from captures, and files are those that were packed."""

import click

from testbed.cli.options import run_argument


@click.command(name="verify")
@run_argument
def command(run_name: str) -> int:
    """Compute every figure and verdict of a run, or of all runs of a sweep, again from the captures alone.

    The run stays as it is. Each file is held against the hashes of its archive first, if it came in one. What
    a run claims and this analysis does not bear out is named, with both values; so is each file that is not
    as it was packed, is missing, or was not packed. Exit codes: 0 all holds, 1 something does not, 2 no such
    run, or nothing by which it could be verified, 3 another command makes or analyses it.
    """
    from testbed.campaign.verifying import verify
    from testbed.cli.named_run import named

    return verify(named(run_name))
