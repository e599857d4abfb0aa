"""`cutset verify`: whether figures follow from captures, and files are those that were packed."""

import click

from testbed.cli.options import run_argument


@click.command(name="verify")
@run_argument
def command(run_name: str) -> int:
    """Compute every figure and verdict of a run, or of all runs of a sweep, again from the captures alone.

    The run stays as it is; an archive is unpacked for this alone, whatever stands below runs/. What summary,
    claims.json and the tables of timelines say and this analysis does not bear out is named. What it is made
    from is held against the hashes of the archive, if it came in one: each file that is not as it was packed,
    is missing, or was not packed is named. Hashes are not signed: they tell of damage, and who can forge
    captures and records can forge them. Pages and pictures are not looked at.

    Exit codes: 0 all holds, 1 something does not, 2 no such run, or nothing by which it could be verified, 3
    another command makes or analyses it.
    """
    from testbed.campaign.reproduction.verifying import verify, verify_archive
    from testbed.cli.named_run import named, packed

    with packed(run_name) as archive:
        return verify(named(run_name)) if archive is None else verify_archive(archive, run_name)
