"""`cutset doctor`: checks this machine, shows what will be used, and how to get what is missing."""

import click

from testbed.campaign.texts.machines_table import MARKS

SUBJECT_WIDTH = 12


@click.command(name="doctor")
def command() -> int:
    """Check what this machine can do, and show how to get what is missing."""
    from testbed.campaign import exit_codes
    from testbed.doctor import examine
    from testbed.findings import FindingState

    missing = []
    for finding in examine():
        mark, colour = MARKS[finding.state]
        click.echo(f"{click.style(mark, fg=colour)} {finding.subject:<{SUBJECT_WIDTH}} {finding.detail}")
        if finding.remedy:
            click.echo(f"  {'':<{SUBJECT_WIDTH}} -> {finding.remedy}")
        if finding.state is FindingState.MISSING:
            missing.append(finding.subject)
    if missing:
        click.echo(f"cutset: missing: {', '.join(missing)}", err=True)
        return exit_codes.MACHINE
    click.echo("This machine has everything that a run needs.")
    return 0
