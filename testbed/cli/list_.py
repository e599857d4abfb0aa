"""`cutset list`: the experiments, topologies, systems of programs, suites and studies that come with it.

Each has a line. On a terminal a description that is too long goes on below itself; elsewhere a line is never
broken.
"""

import shutil
import sys
import textwrap
from collections.abc import Callable, Iterable

import click

from testbed.cli.output import reader_may_leave

DESCRIPTION_WIDTH_MIN = 20


@click.command(name="list")
def command() -> None:
    """Show the experiments, topologies, systems of programs, suites and studies there are."""
    from experiments.loader import experiment_names, load_experiment
    from experiments.studies import listed
    from experiments.suite import read_suite, suite_names
    from systems.loader import load_system
    from systems.names import system_names
    from topologies.loader import load_topology, topology_names

    with reader_may_leave():
        _section("Experiments", experiment_names(), lambda name: load_experiment(name).description)
        click.echo()
        _section("Topologies", topology_names(), lambda name: load_topology(name).description)
        click.echo()
        _section("Systems of programs", system_names(), lambda name: load_system(name).description)
        click.echo()
        _section("Suites", suite_names(), lambda name: read_suite(name).suite.description)
        click.echo()
        studies = dict(listed())
        _section("Studies", studies, lambda name: studies[name])


def _section(title: str, names: Iterable[str], describe: Callable[[str], str]) -> None:
    """Each name; a file that cannot be read says so in its place and hides no other."""
    from topologies.errors import InputError

    click.secho(title, bold=True)
    names = list(names)
    width = max(map(len, names), default=0)
    for name in names:
        try:
            said = _broken(describe(name), width + 4)
        except InputError as error:
            said = click.style(_broken(f"cannot be used: {error}", width + 4), fg="red")
        click.echo(f"  {name:<{width}}  {said}".rstrip())


def _broken(text: str, indent: int) -> str:
    """The text in lines that fit beside an indent, if it is for a terminal."""
    if not sys.stdout.isatty():
        return text
    width = max(DESCRIPTION_WIDTH_MIN, shutil.get_terminal_size().columns - indent)
    lines = textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)
    return f"\n{' ' * indent}".join(lines)
