"""`cutset follow`: the path of one event through the network, hop by hop."""

from typing import Any

import click

from testbed.cli.options import SEQ_OR_NTH, json_format, once, run_argument


@click.command(name="follow")
@run_argument
@click.argument("stream")
@click.argument("seq", type=SEQ_OR_NTH)
@once("--after", metavar="FAULT", help="Count from this fault: SEQ is +100 for the hundredth event after it.")
@click.option(
    "--packets", is_flag=True, help="Also every packet that carried it, at every place it was seen."
)
@json_format("one object")
def command(
    run_name: str, stream: str, seq: int | str, *, after: str | None, packets: bool, as_json: bool
) -> None:
    """Follow one event: published, numbered, and every hop from host to host with where its time went.

    STREAM is a number, as 2 or s2, or the region that owns the stream. SEQ is the event's sequence number,
    as 17, or 3:17 in epoch 3 of the stream; `--after cut +100` is the hundredth event published after the
    fault named cut. Columns, in ms: waited at the sender; sending it again until it got through; the links'
    delay; queueing beyond that; the rest of the message; the hop's total. Exit codes: 0 shown, 1 there is
    no such event in the captures, 2 bad input.
    """
    import json

    from analysis.arrow_alone import keep_pandas_out

    keep_pandas_out()
    from analysis.capture.clocks.machine_clocks import read_on_reference
    from analysis.errors import check_messages, check_packets
    from analysis.inspect.following.after_fault import event_after
    from analysis.inspect.following.copies import find
    from analysis.inspect.following.hops import MessagePackets, hops
    from analysis.inspect.following.lines import lines, to_json
    from analysis.inspect.following.story import expected_clients, explain_path
    from analysis.inspect.following.tcp_repair import TcpHistory
    from analysis.inspect.packets.filters import stream_of
    from analysis.timelines.run_metadata import read_metadata
    from testbed.cli.named_run import named_run
    from testbed.cli.output import reader_may_leave

    if (after is not None) != isinstance(seq, str):
        raise click.UsageError("--after FAULT goes with +N: the N-th event after it")
    run = named_run(run_name)
    check_packets(run)
    check_messages(run)
    metadata = read_metadata(*read_on_reference(run))
    number = stream_of(stream, metadata)
    if after is not None:
        seq = event_after(run, number, after, int(seq), metadata)
    found = find(run, number, int(seq), metadata)
    everything = [copy for copy in (found.publish, *found.repeated, *found.copies) if copy is not None]
    story = explain_path(
        found,
        hops(found, metadata, MessagePackets(run, everything).sightings_of),
        metadata,
        expected_clients(run, metadata, found),
        TcpHistory(run, metadata),
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
