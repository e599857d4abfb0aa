"""`cutset schema`: the JSON schemas of the files that people write."""

import json

import click


@click.command(name="schema")
@click.argument("kind", type=click.Choice(["experiment", "topology"]))
def command(kind: str) -> None:
    """Print the JSON schema of experiment or topology files, for completion in editors.

    With the YAML language server, save it to a file and begin yours with:
    # yaml-language-server: $schema=PATH
    """
    from experiments.schema import experiment_schema
    from topologies.json_schema import topology_schema

    schema = experiment_schema() if kind == "experiment" else topology_schema()
    click.echo(json.dumps(schema, indent=2))
