"""The page of captures without a run: the communicating hosts, silences of connections, and their packets.

It has no verdicts, since there is no configuration to compare with.
"""

import shlex
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from analysis.pages.charting.chart_model import Axis, Chart, ChartSeries, ChartSpan
from analysis.pages.page_environment import environment
from analysis.pages.report.formatting import EN_DASH, count_of, number
from analysis.pages.taps.moments import moment, moment_title
from analysis.pages.taps.spooling import TapQuestions
from analysis.pages.taps.tables import tables
from analysis.taps.crossing import MATCHED_MIN
from analysis.taps.opening import time_zero
from analysis.taps.tables import bin_ms
from experiments.files.whole_files import write_whole
from topologies.drawing.palette import colour_of

FOLDER: Final = Path(__file__).parent
TEMPLATE: Final = "captures.html.j2"
MOMENTS_MAX: Final = 6
"""Silences with a picture: the longest, one for each time."""
NAMED_MAX: Final = 8
"""More captures are not named one by one in charts and on the first screen, but counted together."""
ALL: Final = "all captures"
Row = dict[str, Any]


def write_page(asked: TapQuestions, path: Path) -> None:
    """Write the page. Raises OSError."""
    taps = asked.compared.taps
    silences = asked.ask("SELECT * FROM silences ORDER BY tries > 0 DESC, silence_s DESC LIMIT 1000")
    shown = _apart(silences)
    charts = [_throughput(asked, shown), _retransmissions(asked, shown), *_delays(asked, shown)]
    moments = [
        {"title": moment_title(silence), "picture": made, "when": _silence_text(silence, taps.zero_ns)}
        for silence in shown[:MOMENTS_MAX]
        if (made := moment(asked, silence, _command(asked, silence))) is not None
    ]
    names = [tap.name for tap in taps.taps]
    damaged = [(tap.name, tap.index.problem) for tap in taps.taps if tap.index.problem]
    content = environment(FOLDER).get_template(TEMPLATE).render(
        name=", ".join(names) if len(names) <= NAMED_MAX else f"{len(names)} captures",
        begun=time_zero(taps.zero_ns),
        facts=_facts(asked),
        charts=[chart for chart in charts if chart.series],
        moments=moments,
        tables=[each for each in tables(asked) if each.table.rows],
        problems=[*taps.unusable.items(), *damaged],
        least=number(asked.case.tables.silence_s),
    )  # fmt: skip
    write_whole(path, content)


def _command(asked: TapQuestions, silence: Row) -> str:
    taps, port = asked.compared.taps, str(silence["client_port"])
    begin, end = (
        f"{(silence[name] - taps.zero_ns) / 1e9 + apart:.3f}"
        for name, apart in (("from_ns", -0.15), ("to_ns", 0.15))
    )
    return shlex.join(["cutset", "packets", *taps.names, "--from", begin, "--to", end, "--port", port])


def _apart(silences: Sequence[Row]) -> list[Row]:
    """Return silences that do not overlap, those with tries first, then the longest."""
    found: list[Row] = []
    for each in silences:
        if all(each["to_ns"] <= other["from_ns"] or each["from_ns"] >= other["to_ns"] for other in found):
            found.append(each)
    return found


def _silence_text(silence: Row, zero_ns: int) -> str:
    tries = (
        f"{count_of(silence['tries'], 'segment')} brought nothing new"
        if silence["tries"]
        else "no data was sent"
    )
    begin, end = ((silence[name] - zero_ns) / 1e9 for name in ("from_ns", "to_ns"))
    lasted = f"{silence['silence_s']:.3f} s without progress, {begin:.3f}{EN_DASH}{end:.3f} s"
    return f"{lasted}; {tries}, at {silence['capture']}"


def _facts(asked: TapQuestions) -> list[tuple[str, str]]:
    """Return the overview: counts of connections, silences and losses."""
    compared = asked.compared
    named = "capture" if len(compared.taps.taps) <= NAMED_MAX else f"'{ALL}'"
    of = asked.ask(
        f"""SELECT {named} AS capture, count(*) AS n, count(*) FILTER (closed_how = 'RST') AS resets,
        count(*) FILTER (opened AND NOT answered) AS unanswered,
        sum(retransmissions_to_server + retransmissions_to_client) AS again
        FROM connections GROUP BY ALL ORDER BY ALL"""  # noqa: S608
    )
    [silent] = asked.ask(
        """SELECT count(*) AS n, count(*) FILTER (tries > 0) AS tried,
        max(silence_s) FILTER (tries > 0) AS longest FROM silences"""
    )
    stalls = f"{count_of(silent['tried'], 'silence')} with tries"
    stalls += f", the longest {silent['longest']:.3f} s" if silent["longest"] else ""
    facts = [
        (
            f"Connections at {row['capture']}",
            f"{row['n']:,}; {row['unanswered']:,} not answered, {row['resets']:,} reset, "
            f"{count_of(int(row['again']), 'segment')} retransmitted",
        )
        for row in of
    ]
    facts.append(("Silences", f"{stalls}; {silent['n'] - silent['tried']:,} without"))
    if len(compared.taps.taps) > 1 and not compared.crossings:
        facts.append(("Paths", f"no two captures have {MATCHED_MIN} packets in common"))
    for crossing in compared.crossings:
        for there, back in ((crossing.near.name, crossing.far.name), (crossing.far.name, crossing.near.name)):
            facts.append((f"{there} to {back}", _way(asked, there, back)))
    for clock in asked.ask("SELECT * FROM clocks WHERE source = 'packets'"):
        offset = f"{clock['offset_ms']:+.3f} ms ± {clock['error_ms']:.3f} ms"
        known = f"drift {clock['drift_ppm']:+.1f} ppm, from packets; times here are corrected"
        facts.append((f"Clock of {clock['clock']}", f"{offset}, {known}"))
    return facts


def _way(asked: TapQuestions, there: str, back: str) -> str:
    """Describe one direction between two taps."""
    of = f"sender = {asked.questions.literal(there)} AND receiver = {asked.questions.literal(back)}"
    [row] = asked.ask(
        f"""SELECT count(*) AS n, count(*) FILTER (fate = 'lost') AS lost,
        quantile_cont((t_complete_ns - t_sent_ns) / 1e6, 0.5) AS middle,
        max((t_complete_ns - t_sent_ns) / 1e6) AS most FROM transfers WHERE {of}"""  # noqa: S608
    )
    [overtaken] = asked.ask(
        f"""SELECT count(*) FILTER (t_sent_ns < before) AS n FROM (SELECT t_sent_ns, max(t_sent_ns) OVER
        (ORDER BY t_complete_ns, t_sent_ns ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM transfers WHERE {of} AND fate = 'arrived')"""  # noqa: S608
    )
    if row["middle"] is None:
        return f"{count_of(row['n'], 'packet')}, {row['lost']:,} lost"
    error_ns = asked.compared.error_ns(there, back, asked.case.zero_ns)
    error = "clocks not compared" if error_ns is None else f"± {error_ns / 1e6:.3f} ms"
    delay = f"delay {row['middle']:.3f} ms in the median, {row['most']:.3f} ms at most ({error})"
    return f"{count_of(row['n'], 'packet')}, {row['lost']:,} lost, {overtaken['n']:,} overtaken; {delay}"


def _chart(  # noqa: PLR0917 (independent parameters)
    asked: TapQuestions, shown: Sequence[Row], key: str, title: str, y: Axis, series: Iterable[ChartSeries],
    note: str = "",
) -> Chart:  # fmt: skip
    """Return a chart over time, with the shown silences that had tries."""
    zero_ns = asked.case.zero_ns
    spans = (
        ChartSpan("silence", (each["from_ns"] - zero_ns) / 1e9, (each["to_ns"] - zero_ns) / 1e9)
        for each in shown[:MOMENTS_MAX]
        if each["tries"]
    )
    x = Axis("time since the first packet, s", "s", low=0.0)
    return Chart(key, title, x, y, tuple(series), spans=tuple(spans), together="time", note=note)


def _throughput(asked: TapQuestions, shown: Sequence[Row]) -> Chart:
    taps = asked.compared.taps
    duration_ns = taps.end_ns - taps.zero_ns
    width_s = bin_ms(duration_ns) / 1000
    chosen = {tap.name: f"AND name = {asked.questions.literal(tap.name)}" for tap in taps.taps}
    if len(chosen) > NAMED_MAX:
        chosen = {ALL: ""}
    series = []
    for place, (name, condition) in enumerate(chosen.items()):
        rows = asked.ask(
            f"""SELECT start_s, sum(bytes_per_s) * 8 / 1e6 AS rate FROM throughput
            WHERE scope = 'capture' {condition} GROUP BY start_s"""  # noqa: S608
        )
        rates = {round(row["start_s"] / width_s): row["rate"] for row in rows}
        bins = range(int(duration_ns / 1e9 / width_s) + 1)
        x = [round(each * width_s, 6) for each in bins]
        series.append(
            ChartSeries(name, colour_of(place), x, [rates.get(each, 0.0) for each in bins], label=name)
        )
    return _chart(asked, shown, "throughput", "Throughput on the wire", Axis("Mbit/s", "Mbit/s"), series)


def _retransmissions(asked: TapQuestions, shown: Sequence[Row]) -> Chart:
    zero_ns, counts = asked.case.zero_ns, asked.case.retransmissions
    if len(counts) > NAMED_MAX:
        counts = {ALL: sum(counts.values(), Counter())}
    begun_s = zero_ns // 10**9
    lasted = (asked.compared.taps.end_ns - zero_ns) // 10**9 + 1
    step = -(-lasted // 3000)
    bins = range(0, int(lasted), int(step))
    x = [each + (begun_s * 10**9 - zero_ns) / 1e9 if each else 0.0 for each in bins]
    series = (
        ChartSeries(
            name,
            colour_of(place),
            x,
            [sum(of[begun_s + second] for second in range(each, each + step)) / step for each in bins],
            label=name,
        )
        for place, (name, of) in enumerate(counts.items())
        if of
    )
    y = Axis("segments/s", "/s")
    return _chart(asked, shown, "retransmissions", "TCP retransmissions", y, series)


def _delays(asked: TapQuestions, shown: Sequence[Row]) -> list[Chart]:
    """Return a chart for each path: the one-way delays of packets between two taps, both directions."""
    zero_ns, found = asked.case.zero_ns, []
    width_ns = bin_ms(asked.compared.taps.end_ns - zero_ns) * 1_000_000
    for number_, crossing in enumerate(asked.compared.crossings):
        ends = (crossing.near.name, crossing.far.name)
        series = []
        for place, (there, back) in enumerate((ends, ends[::-1])):
            rows = asked.ask(
                f"""SELECT (t_sent_ns - {zero_ns}) // {width_ns} AS bin,
                quantile_cont((t_complete_ns - t_sent_ns) / 1e6, 0.5) AS middle,
                max((t_complete_ns - t_sent_ns) / 1e6) AS most,
                min((t_complete_ns - t_sent_ns) / 1e6) AS least FROM transfers
                WHERE fate = 'arrived' AND sender = {asked.questions.literal(there)}
                AND receiver = {asked.questions.literal(back)} GROUP BY 1 ORDER BY 1"""  # noqa: S608
            )
            series.append(
                ChartSeries(
                    f"{there} to {back}",
                    colour_of(place),
                    [row["bin"] * width_ns / 1e9 for row in rows],
                    [row["middle"] for row in rows],
                    low=[row["least"] for row in rows],
                    high=[row["most"] for row in rows],
                    label=f"{there} to {back}",
                    form="bars",
                )
            )
        error_ns = asked.compared.error_ns(*ends, zero_ns)
        note = "The clocks could not be compared, so delays include their difference."
        if error_ns is not None:
            note = "Dots are medians, bars reach from the least to the most; "
            note += f"the clocks' error is ± {error_ns / 1e6:.3f} ms."
        title = f"One-way delay between {ends[0]} and {ends[1]}"
        found.append(_chart(asked, shown, f"delay-{number_}", title, Axis("delay, ms", "ms"), series, note))
    return found
