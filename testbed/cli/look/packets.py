"""`cutset packets`: the messages of a run, or packets of captures: lines, JSON, bytes, or a capture."""

from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options import (
    EVENT,
    NEW_FILE,
    SECONDS,
    json_format,
    message_options,
    once,
    run_arguments,
    system_option,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from analysis.inspect.packets.filters import Filter
    from analysis.timelines.run_metadata import RunMetadata


@click.command(name="packets")
@run_arguments("RUN|CAPTURE...")
@once("--from", "from_s", type=SECONDS, help="Seconds since time 0.")
@once("--to", "to_s", type=SECONDS, help="Seconds since time 0.")
@once("--around", metavar="FAULT", help="The time around this fault, in place of --from and --to.")
@once("--span", "span_s", type=SECONDS, help="Seconds before and after it.  [default: 1]")
@message_options
@click.option(
    "--port",
    "ports",
    multiple=True,
    type=click.IntRange(0, 65535),
    metavar="N",
    help="Packets from or to this port, for captures.",
)
@system_option
@click.option(
    "--lost",
    is_flag=True,
    help="Messages sent that did not arrive completely; not those dropped by a process (docs/sql.md).",
)
@once(
    "--region-of",
    type=EVENT,
    metavar="STREAM/SEQ",
    help="Messages that spread this event, as r1/17, over the region of a space that it affects.",
)
@once("--limit", type=click.IntRange(1), metavar="N", help="Stop after this number.")
@json_format("one object a line, with the columns of `transfers` (docs/tables.md)")
@click.option(
    "--raw", is_flag=True, help="Also show the bytes from the captures: each field with its bytes and value."
)
@click.option(
    "--retransmissions", is_flag=True, help="Show retransmissions: when, which bytes, which messages."
)
@click.option(
    "--routing",
    is_flag=True,
    help="Show the messages of the gateways' routing protocol, as tshark names them; takes times and --link.",
)
@once(
    "--pcap",
    type=NEW_FILE,
    help="Write the packets of these messages to this file, as pcapng; `-` is standard output.",
)
@once(
    "--at",
    metavar="PLACE",
    help="With --pcap: packets as captured at this host or side of a link, as r2-r3@r2.",
)
def command(run_names: tuple[str, ...], as_json: bool, **asked: Any) -> None:
    """Show the messages that the processes of a run sent each other, in order of time.

    The run must be analysed. Several values of --host, --region, --link, --type or --stream widen the choice;
    options of different kinds narrow it. A message's delay is from its first byte at the sender until it was
    complete at the receiver.

    --pcap merges the packets of all hosts and links by time. Each packet appears once for every place that
    captured it, two to four times, and Wireshark takes the copies for retransmissions. With --at PLACE it
    appears once, as captured there. Each capture is an interface of its name, for Wireshark's filter
    `frame.interface_name == "r2-proxy-0-eth0"`. With only times and places given, all packets are written,
    otherwise those that carry the matching messages. A comment names each packet's processes. The file
    includes keys of TLS connections, if programs logged them.

    Captures in place of a run (files, a folder, a pattern, a URL, `-`) give packets; those of several places
    on one path are compared, and show each packet's delay and which were lost (docs/captures.md). Their
    --host is an address, their types are DATA, ACK, SYN, SYN-ACK, FIN, RST, UDP and IP.

    Exit codes: 0 shown, 2 no such run, host, link, stream…
    """
    from analysis.arrow_alone import keep_pandas_out

    keep_pandas_out()
    from analysis.capture.clocks.machine_clocks import read_on_reference
    from analysis.errors import check_measured, check_messages, check_packets, check_transfers
    from analysis.inspect.packets.filters import codec_of
    from analysis.timelines.run_metadata import read_metadata
    from testbed.cli.look.captured_packets import show_captured
    from testbed.cli.look.packets_output import MessageListing
    from testbed.cli.named_run import named_cases, named_run
    from testbed.cli.output import reader_may_leave

    _check(asked, as_json)
    runs, captures = named_cases(run_names)
    if captures and not runs:
        show_captured(captures, asked, as_json=as_json)
        return
    if len(run_names) > 1:
        raise click.UsageError("name one run, or captures only")
    if asked.pop("ports") or asked.pop("system"):
        raise click.UsageError("--port and --system are for captures: runs have --host and --type")
    run = named_run(run_names[0])
    check_packets(run)
    (check_measured if asked["pcap"] else check_transfers)(run)  # before the header is written
    if not (asked["pcap"] or asked["retransmissions"] or asked["routing"]):
        check_messages(run)
    record, clocks = read_on_reference(run)
    metadata = read_metadata(record, clocks)
    output = MessageListing(
        run, metadata, _wanted(asked, metadata, codec_of(record.plan).by_name), asked["limit"]
    )
    if metadata.rerouted is not None and asked["links"] and not asked["routing"]:
        click.echo("routes were not fixed: --link selects by the planned routes", err=True)
    with reader_may_leave():
        if asked["pcap"]:
            output.write_packets(asked["pcap"], asked["at"])
        elif asked["routing"]:
            output.show_routing(asked["links"], as_json=as_json)
        elif asked["retransmissions"]:
            output.show_retransmissions(as_json=as_json)
        elif asked["raw"]:
            output.show_bytes(as_json=as_json)
        else:
            output.show_messages(as_json=as_json)


def _check(asked: dict[str, Any], as_json: bool) -> None:
    """Refuse options that contradict each other."""
    if asked["around"] and (asked["from_s"] is not None or asked["to_s"] is not None):
        raise click.UsageError("--around sets the time: leave out --from and --to")
    if asked["span_s"] is not None and not asked["around"]:
        raise click.UsageError("--span is the time before and after a fault: add --around FAULT")
    if asked["span_s"] is not None and asked["span_s"] <= 0:
        raise click.UsageError(
            f"--span {asked['span_s']} is not a time before and after a fault, such as 0.5"
        )
    if None not in {asked["from_s"], asked["to_s"]} and asked["from_s"] >= asked["to_s"]:
        raise click.UsageError(f"--from {asked['from_s']} is not before --to {asked['to_s']}")
    if asked["region_of"] and (asked["streams"] or asked["seq"]):
        raise click.UsageError("--region-of names the event: leave out --stream and --seq")
    ways = [name for name in ("raw", "retransmissions", "routing", "pcap") if asked[name]]
    if len(ways) > 1:
        raise click.UsageError(f"--{ways[0]} and --{ways[1]} exclude each other")
    if asked["routing"]:
        for name in ("hosts", "regions", "types", "streams", "topics", "seq", "lost"):
            if asked[name]:
                raise click.UsageError(f"--routing takes times and --link: leave --{name.rstrip('s')} out")
    if asked["pcap"] and (as_json or asked["limit"]):
        raise click.UsageError("--pcap writes packets, whole: leave --format json and --limit out")
    if asked["at"] and not asked["pcap"]:
        raise click.UsageError("--at selects the packets of --pcap: add --pcap FILE")


def _wanted(asked: dict[str, Any], metadata: "RunMetadata", types: "Collection[str]") -> "Filter":
    from analysis.inspect.packets.filters import SPAN_S, Query, make_filter

    times, places = ("from_s", "to_s", "around"), ("hosts", "regions", "links")
    names = (*times, *places, "types", "streams", "topics", "seq", "lost", "region_of")
    span_s = SPAN_S if asked["span_s"] is None else asked["span_s"]
    return make_filter(Query(**{name: asked[name] for name in names}, span_s=span_s), metadata, types)
