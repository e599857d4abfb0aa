"""`cutset list`: the bundled experiments, topologies, systems of programs, suites and studies.

Each has a line. On a terminal a long description continues in indented lines; elsewhere lines are not broken.
"""

import shutil
import sys
import textwrap
from typing import TYPE_CHECKING

import click

from testbed.cli.output import reader_may_leave

if TYPE_CHECKING:
    from collections.abc import Mapping

DESCRIPTION_WIDTH_MIN = 20


@click.command(name="list")
@click.argument("system", required=False)
@click.option("--paper", metavar="NAME", help="Only experiments and studies after this paper, as sprinkler.")
def command(system: str | None, paper: str | None) -> int:
    """Show the experiments, topologies, systems of programs, suites and studies there are.

    With SYSTEM: the roles, workloads and parameters of that system, with their defaults.
    """
    from experiments.campaigns.studies import listed_studies
    from experiments.declared import is_known_system, known_systems
    from testbed.campaign.listing import of_paper, of_system, sections

    if system is not None and paper is not None:
        raise click.UsageError("give SYSTEM or --paper")
    if system is not None:
        if not is_known_system(system):
            known = ", ".join(known_systems())
            raise click.BadParameter(f"no system {system!r:.40}, but {known}", param_hint="SYSTEM")
        shown = of_system(system)
    elif paper is not None:
        shown = of_paper(paper)
        if not shown:
            raise click.BadParameter(f"nothing is after a paper {paper!r:.40}", param_hint="--paper")
    else:
        shown = {**sections(), "Studies": dict(listed_studies())}
    with reader_may_leave():
        for number, (title, described) in enumerate(shown.items()):
            if number:
                click.echo()
            _section(title, described)
    return 0


def _section(title: str, described: "Mapping[str, str]") -> None:
    """Print each name with its description."""
    click.secho(title, bold=True)
    width = max(map(len, described), default=0)
    for name, about in described.items():
        click.echo(f"  {name:<{width}}  {_broken(about, width + 4)}".rstrip())


def _broken(text: str, indent: int) -> str:
    """Break a text into lines that fit beside an indent, if the output is a terminal."""
    if not sys.stdout.isatty():
        return text
    width = max(DESCRIPTION_WIDTH_MIN, shutil.get_terminal_size().columns - indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)
