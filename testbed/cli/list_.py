"""`cutset list`: the experiments, topologies and suites that come with Cutset, a line each."""

from collections.abc import Callable, Iterable

import click

from testbed.cli.piping import reader_may_leave


@click.command(name="list")
def command() -> None:
    """Show the experiments, topologies and suites there are."""
    from experiments.loader import experiment_names, load_experiment
    from experiments.suite import read_suite, suite_names
    from topologies.loader import load_topology, topology_names

    with reader_may_leave():
        _section("Experiments", experiment_names(), lambda name: load_experiment(name).description)
        click.echo()
        _section("Topologies", topology_names(), lambda name: load_topology(name).description)
        click.echo()
        _section("Suites", suite_names(), lambda name: read_suite(name).suite.description)


def _section(title: str, names: Iterable[str], describe: Callable[[str], str]) -> None:
    """One line for each name; a file that cannot be read says so in its line and hides no other."""
    from topologies.errors import InputError

    click.secho(title, bold=True)
    names = list(names)
    width = max(map(len, names), default=0)
    for name in names:
        try:
            said = describe(name)
        except InputError as error:
            said = click.style(f"cannot be used: {error}", fg="red")
        click.echo(f"  {name:<{width}}  {said}".rstrip())
