"""`cutset follow`: the path of one event through the network, hop by hop."""

from typing import Any

import click

from testbed.cli.options import SEQ, run_argument


@click.command(name="follow")
@run_argument
@click.argument("stream")
@click.argument("seq", type=SEQ)
@click.option("--packets", is_flag=True, help="Also every packet that carried it, at every capture point.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object instead of text.")
def command(run_name: str, stream: str, seq: int, *, packets: bool, as_json: bool) -> None:
    """Follow one event from its publication through every hop, and show where it spent its time.

    STREAM is a number, as 2 or s2, or the region that owns the stream. SEQ is the event's sequence number,
    as 17, or 3:17 in epoch 3 of the stream.
    Columns, in ms: waiting at the sender; retransmissions until it got through; delay of the links; queueing
    beyond that; the rest of the message; the hop's total. Exit codes: 0 shown, 1 the captures have no such
    event, 2 bad input.
    """
    import json

    from analysis.capture.clocks.machine_clocks import read_on_reference
    from analysis.errors import check_messages, check_packets
    from analysis.inspect.following.copies import find
    from analysis.inspect.following.hops import Packets, hops
    from analysis.inspect.following.lines import lines, to_json
    from analysis.inspect.following.story import clients_of, tell
    from analysis.inspect.packets.filters import stream_of
    from analysis.timelines.run_metadata import read_metadata
    from testbed.cli.named_run import named_run
    from testbed.cli.output import reader_may_leave

    run = named_run(run_name)
    check_packets(run)
    check_messages(run)
    metadata = read_metadata(*read_on_reference(run))
    found = find(run, stream_of(stream, metadata), seq, metadata)
    everything = [copy for copy in (found.publish, *found.repeated, *found.copies) if copy is not None]
    story = tell(
        found, hops(found, metadata, Packets(run, everything).of), metadata, clients_of(run, metadata, found)
    )
    with reader_may_leave():
        if as_json:
            click.echo(json.dumps(to_json(story, metadata), indent=1))
            return
        for line in lines(story, metadata, packets=packets, style=_style):
            click.echo(line)


COLOURS: dict[str, dict[str, Any]] = {
    "head": {"bold": True},
    "last": {"bold": True},
    "lost": {"fg": "red"},
    "again": {"dim": True},
}


def _style(text: str, kind: str) -> str:
    return click.style(text, **COLOURS.get(kind, {}))
