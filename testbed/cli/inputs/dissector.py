"""`cutset dissector`: a Wireshark dissector of the system's messages, or a table of them."""

from pathlib import Path

import click

from testbed.cli.options import output_option


@click.command(name="dissector")
@click.option("--system", default="sprinkler", show_default=True, help="The system under test.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["lua", "markdown"]),
    default="lua",
    show_default=True,
    help="lua: Wireshark's dissector; markdown: the table of messages.",
)
@click.option("--port", type=click.IntRange(1, 65535), help="TCP port of the nodes.  [default: the system's]")
@output_option
def command(system: str, form: str, port: int | None, output: Path | None) -> None:
    """Write a dissector with which Wireshark and tshark show a system's messages.

    \b
    mkdir -p ~/.local/lib/wireshark/plugins
    cutset dissector -o ~/.local/lib/wireshark/plugins/sprinkler.lua
    tshark -X lua_script:sprinkler.lua -r CAPTURE

    The info column then shows messages as in the papers, EVENTS s2 [48210..48341], and fields have names to
    filter by: sprinkler.stream == 2, sprinkler.type == 5, sprinkler.malformed.
    """
    from analysis.messages.marked import known_codec
    from analysis.messages.table import markdown
    from analysis.messages.wireshark import dissector
    from experiments.declared import declared_by, programs_of
    from experiments.parameters import complete_parameters, known_systems
    from testbed.cli.output import write_or_print

    if system not in known_systems():
        raise click.BadParameter(
            f"no system {system!r}, but {', '.join(known_systems())}: `cutset --system-module FILE` adds one",
            param_hint="--system",
        )
    codec = known_codec(declared_by(system))
    if programs_of(system) is not None or codec is None:
        raise click.BadParameter(f"the messages of {system} are not known here", param_hint="--system")
    if form == "markdown":
        text = markdown(codec, system)
    else:
        text = dissector(codec, system, port or complete_parameters(system, {})["port"])
    write_or_print(output, text)
