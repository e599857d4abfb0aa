"""`cutset verify`: checks whether figures follow from captures, and files are unchanged since packing."""

import click

from testbed.cli.options import run_argument


@click.command(name="verify")
@run_argument
def command(run_name: str) -> int:
    """Compute every figure and verdict of a run, or of all runs of a sweep, again from the captures alone.

    The run is not changed; an archive is unpacked temporarily, whatever is below runs/. Values of the
    summary, claims.json and the tables of timelines that differ from the new analysis are listed. The source
    files are compared with the hashes of the archive, if the run came in one: files that have changed, are
    missing, or were not packed are listed. Hashes are not signed: they detect damage, but not forgery of
    captures and records. Pages and pictures are not checked.

    Exit codes: 0 all holds, 1 something does not, 2 no such run, or nothing that can be verified, 3 another
    command makes or analyses it.
    """
    from testbed.campaign.reproduction.verifying import verify, verify_archive
    from testbed.cli.named_run import named, packed

    archive = packed(run_name)
    return verify(named(run_name)) if archive is None else verify_archive(archive, run_name)
