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

    from topologies.errors import InputError

DESCRIPTION_WIDTH_MIN = 20


@click.command(name="list")
def command() -> None:
    """Show the available experiments, topologies, systems of programs, suites and studies."""
    from experiments.studies import listed
    from testbed.campaign.listing import sections

    with reader_may_leave():
        for title, described in sections().items():
            _section(title, described)
            click.echo()
        _section("Studies", dict(listed()))


def _section(title: str, described: "Mapping[str, str | InputError]") -> None:
    """Print each name; a file that cannot be used shows its error and does not hide others."""
    click.secho(title, bold=True)
    width = max(map(len, described), default=0)
    for name, about in described.items():
        if isinstance(about, str):
            text = _broken(about, width + 4)
        else:
            text = click.style(_broken(f"cannot be used: {about}", width + 4), fg="red")
        click.echo(f"  {name:<{width}}  {text}".rstrip())


def _broken(text: str, indent: int) -> str:
    """Return the text in lines that fit beside an indent, if the output is a terminal."""
    if not sys.stdout.isatty():
        return text
    width = max(DESCRIPTION_WIDTH_MIN, shutil.get_terminal_size().columns - indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)
