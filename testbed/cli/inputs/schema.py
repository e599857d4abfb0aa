"""`cutset schema`: the JSON schemas of files that people write, and the tables that can be queried."""

import json

import click


@click.command(name="schema")
@click.argument("kind", type=click.Choice(["experiment", "topology", "suite", "inventory", "tables"]))
def command(kind: str) -> None:
    """Print the JSON schema of experiment, topology, suite or inventory files, for completion in editors.

    `tables` prints the tables of a run for `cutset sql`: columns, types and meanings.

    With the YAML language server, save it to a file and begin yours with:
    # yaml-language-server: $schema=PATH
    """
    from experiments.schema import experiment_schema
    from experiments.suite import suite_schema
    from testbed.cli.output import reader_may_leave
    from testbed.machines.inventory import inventory_schema
    from topologies.json_schema import topology_schema

    schemas = {
        "experiment": experiment_schema,
        "topology": topology_schema,
        "suite": suite_schema,
        "inventory": inventory_schema,
    }
    with reader_may_leave():
        if kind == "tables":
            from analysis.sql.tables import tables_as_markdown

            click.echo(tables_as_markdown(), nl=False)
            return
        click.echo(json.dumps(schemas[kind](), indent=2))
