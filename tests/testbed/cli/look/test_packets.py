"""`cutset packets`: its exact output for a small run around a cut."""

import gzip
import json
import sys

import pytest

from analysis.pipeline import analyze_here
from analysis.schemas import TRANSFERS
from experiments.records.json_files import read_json
from experiments.records.rundir import RunDirectory
from testbed.cli.main import run as cutset
from tests.analysis.inspect.packets.small_run import around_the_cut

HEAD = "      time s  from                  to                   delay ms    bytes  message"
HELLO = "    4.901000  r2-driver-0        -> r2-proxy-0              2.000       28  HELLO"
PUBLISH = (
    "    4.940000  r2-driver-0        -> r2-proxy-0              2.000      138  PUBLISH s2 requests [1..10]"
    "  (retransmitted)"
)
PUBLISHED = (
    "    4.942500  r2-proxy-0         -> r2-driver-0             2.000       32  PUBLISHED s2 [1..10]"
    " request 1"
)
EVENTS = "    4.945000  r2-proxy-0         -> r3-proxy-0             17.000      146  EVENTS s2 [1..10]"
HEARTBEAT = "    4.945000  r2-proxy-0         -> r3-proxy-0             17.000       20  ADVERTISEMENT s2 10"
SUBSCRIBE = "    4.960250  r3-client-0        -> r3-proxy-0              2.000       20  SUBSCRIBE s2 after 0"
CUT = "    5.000000  ---- cut r2-r3 ----"
LOST = (
    "    5.010000  r2-proxy-0         -> r3-proxy-0               lost      146  EVENTS s2 [11..20]"
    "  (retransmitted)"
)
RESTORE = "    9.000000  ---- restore r2-r3 ----"


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return around_the_cut().write(tmp_path_factory.mktemp("runs") / "a-run")


@pytest.fixture
def shown(run, capsys):
    """Return a function that runs the command successfully and returns its output lines."""

    def show(*options: str, of: RunDirectory = run) -> list[str]:
        assert cutset(["packets", str(of.path), *options]) == 0
        return capsys.readouterr().out.splitlines()

    return show


def test_messages_are_lines_in_order_of_time_with_faults_between(run, capsys):
    assert cutset(["packets", str(run.path)]) == 0
    said = capsys.readouterr()
    lines = [HEAD, HELLO, PUBLISH, PUBLISHED, EVENTS, HEARTBEAT, SUBSCRIBE, CUT, LOST, RESTORE]
    assert said.out.splitlines() == lines
    assert said.err == "7 messages, 1 lost, 2 retransmitted\n"


@pytest.mark.parametrize(
    ("options", "lines"),
    [
        ("--from 4.945 --to 4.96", [EVENTS, HEARTBEAT]),
        ("--from -1 --to 4.94", [HELLO]),
        ("--around cut --span 50ms", [SUBSCRIBE, CUT, LOST]),
        ("--from 4.945s --to 4960ms", [EVENTS, HEARTBEAT]),
        ("--host r2/driver-0 --to 5", [HELLO, PUBLISH, PUBLISHED]),
        ("--host r2-driver-0 --host r3-client-0 --to 5", [HELLO, PUBLISH, PUBLISHED, SUBSCRIBE]),
        ("--region r3 --to 5", [EVENTS, HEARTBEAT, SUBSCRIBE]),
        ("--link r2-r3 --to 5", [EVENTS, HEARTBEAT]),
        ("--type events --to 5", [EVENTS]),
        ("--stream s2 --type events --to 5", [EVENTS]),
        ("--stream r2 --type events --to 5", [EVENTS]),
        ("--stream 2 --seq 10..10 --to 5", [PUBLISHED, EVENTS, HEARTBEAT]),
        ("--seq 11.. --from 5 --to 6", [CUT, LOST]),
        ("--lost --from 5 --to 6", [CUT, LOST]),
        ("--limit 2", [HELLO, PUBLISH]),
    ],
)
def test_filters_narrow_the_output(shown, options, lines):
    assert shown(*options.split()) == [HEAD, *lines]


def test_an_empty_result_is_reported(run, capsys):
    assert cutset(["packets", str(run.path), "--type", "follow", "--to", "1"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == (HEAD + "\n", "no message matches\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--limit 6", "6 messages, 0 lost, 1 retransmitted; stopped at --limit 6: there are more\n"),
        ("--raw --limit 1", "1 message, 0 lost, 0 retransmitted; stopped at --limit 1: there are more\n"),
        ("--retransmissions --limit 1", "1 repetition of 1 segment; stopped at --limit 1: there are more\n"),
    ],
)
def test_the_count_reports_lines_beyond_the_limit(run, capsys, options, said):
    assert cutset(["packets", str(run.path), *options.split()]) == 0
    assert capsys.readouterr().err == said


def test_on_a_terminal_problems_are_coloured(shown, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    coloured = shown("--from", "4.94")
    assert f"\x1b[31m{LOST}\x1b[0m" in coloured
    assert f"\x1b[33m{PUBLISH}\x1b[0m" in coloured
    assert SUBSCRIBE in coloured
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in "".join(shown())


def test_json_is_the_row_of_the_table_and_its_label(shown, run):
    rows = [json.loads(line) for line in shown("--format", "json")]
    assert len(rows) == 7
    assert all([*row] == [*TRANSFERS.names, "label"] for row in rows)
    lost = {
        name: rows[-1][name] for name in ("sender", "receiver", "first_seq", "fate", "t_sent_ns", "label")
    }
    assert lost == {
        "sender": "r2-proxy-0", "receiver": "r3-proxy-0", "first_seq": 11, "fate": "lost",
        "t_sent_ns": 1_700_000_005_010_000_000, "label": "EVENTS s2 [11..20]",
    }  # fmt: skip
    assert rows[4]["advertised"] == [{"stream": 2, "cnt": 10}]


RAW_SUBSCRIBE = f"""\
{HEAD}
{SUBSCRIBE}
                r3-client-0-eth0, in 1 packet
                      0  00 00 00 10              length               16 bytes
                      4  01                       version              1
                      5  03                       type                 3 SUBSCRIBE
                      6  00 00                    flags                0
                      8  00 00 00 02              stream               2
                     12  00 00 00 00 00 00 00 00  cnt                  0 seq
"""


def test_raw_shows_the_bytes_of_every_field(shown):
    assert shown("--raw", "--type", "subscribe", "--to", "5") == RAW_SUBSCRIBE.splitlines()


def test_raw_reassembles_a_message_of_several_packets(shown):
    (row,) = (json.loads(line) for line in shown("--raw", "--format", "json", "--lost"))
    assert (row["capture"], row["packets"]) == ("r2-proxy-0-eth0", 2)
    payload = row["fields"][-1]
    assert (payload["offset"], payload["name"], payload["value"], payload["unit"]) == (
        46,
        "payload",
        100,
        "bytes",
    )
    assert bytes.fromhex(payload["bytes"]) == b"".join(b"02%08d" % seq for seq in range(11, 21))


def test_long_payloads_are_shortened_in_text(shown):
    lines = shown("--raw", "--lost", "--limit", "1")
    assert lines[-2].startswith("                    102  ")
    assert lines[-1] == "                         … 36 bytes more (--format json has them)"


@pytest.mark.slow
def test_compressed_captures_have_the_same_bytes(shown, tmp_path):
    small = around_the_cut()
    run = RunDirectory(tmp_path / "a-run")
    for capture in small.content["plan"]["captures"]:
        capture["file"] += ".gz"
    for name in list(small.records):
        small.records[f"{name}.pcap.gz"] = small.records.pop(name)
    small.write(run.path)
    for capture in run.captures.glob("*.gz"):
        assert capture.read_bytes()[:2] != b"\x1f\x8b"
        capture.write_bytes(gzip.compress(capture.read_bytes()))
    analyze_here(run, progress=lambda _: None)
    assert shown("--raw", "--to", "5", of=run) == shown("--raw", "--to", "5")


AGAIN = """\
      time s       first s   after ms  nth  seen at                                 \
from                  to                     from byte    bytes  carries
    4.955000      4.940000     15.000    2  r2-driver-0, r2-proxy-0                 \
r2-driver-0        -> r2-proxy-0                   128       38  PUBLISH s2 requests [1..10]
    5.000000  ---- cut r2-r3 ----
    5.260000      5.010000    250.000    2  r2-proxy-0                              \
r2-proxy-0         -> r3-proxy-0                   166      146  EVENTS s2 [11..20]
    9.000000  ---- restore r2-r3 ----
"""


def test_retransmissions_are_listed_once_with_their_captures(run, capsys):
    assert cutset(["packets", str(run.path), "--retransmissions"]) == 0
    said = capsys.readouterr()
    assert said.out == AGAIN
    assert said.err == "2 repetitions of 2 segments\n"


def test_retransmissions_are_objects_for_programs(shown):
    (row,) = (json.loads(line) for line in shown("--retransmissions", "--format", "json", "--link", "r2-r3"))
    assert (row["t_ns"] - row["first_ns"], row["nth"], row["hosts"]) == (250_000_000, 2, ["r2-proxy-0"])
    assert (row["receiver"], row["messages"]) == ("r3-proxy-0", ["EVENTS s2 [11..20]"])


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--link r2-r9", "cutset: --link r2-r9: no such link between regions: known are r0-r1, r2-r3"),
        ("--around nothing", "cutset: --around nothing: no such fault: known are cut, restore"),
        ("--stream 9", "cutset: --stream 9: no such stream: known are 0 (r0), 1 (r1), 2 (r2), 3 (r3)"),
        ("--around cut --to 5", "--around sets the time: leave out --from and --to"),
        ("--span 5", "--span is the time before and after a fault: add --around FAULT"),
        ("--raw --retransmissions", "--raw and --retransmissions exclude each other"),
        ("--pcap x --format json", "--pcap writes packets, whole: leave --format json and --limit out"),
        ("--at r2-proxy-0", "--at selects the packets of --pcap: add --pcap FILE"),
        (
            "--pcap x --at r2-r3",
            "cutset: --at r2-r3: no such place with a capture: known are r0-proxy-0, r0-proxy-1, ",
        ),
        ("--from 5 --to 5", "--from 5 is not before --to 5"),
        ("--from 300", "cutset: --from 300: this run ended at "),
        ("--around cut --span 0", "--span 0 is not a time before and after a fault, such as 0.5"),
        ("--from 1 --from 2", "Invalid value for '--from': is given 2 times, but takes one value"),
        ("--from soon", "soon is not a number of seconds, as 19.4 or 200ms"),
        ("--seq 7..3", "7..3 is not a range of sequence numbers, as 48210..48341"),
        (
            "--pcap /nowhere/x.pcapng",
            "--pcap /nowhere/x.pcapng: cannot be written: No such file or directory",
        ),
    ],
)
def test_impossible_options_are_refused(run, capsys, options, said):
    assert cutset(["packets", str(run.path), *options.split()]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert said in captured.err


@pytest.mark.parametrize("command", [["packets"], ["follow", "r2", "5"], ["diagram", "--around", "cut"]])
def test_a_simulated_run_has_no_packets(run, tmp_path, capsys, command):
    simulated = RunDirectory(tmp_path / "simulated")
    simulated.table("transfers").mkdir(parents=True)
    simulated.run_json.write_text(json.dumps(read_json(run.run_json) | {"simulation": {"virtual_s": 10}}))
    name, *rest = command
    assert cutset([name, str(simulated.path), *rest]) == 2
    assert "was simulated and has no packets: the same experiment with `--on local`" in (
        capsys.readouterr().err
    )


def test_a_run_without_captures_reports_that_it_has_no_messages(run, tmp_path, capsys):
    bare = RunDirectory(tmp_path / "bare")
    bare.table("transfers").mkdir(parents=True)
    content = read_json(run.run_json)
    content["captures"] = content["plan"]["captures"] = []
    bare.run_json.write_text(json.dumps(content))
    assert cutset(["packets", str(bare.path), "--to", "1"]) == 0
    said = capsys.readouterr()
    assert (said.out, said.err) == (HEAD + "\n", "no messages: this run has no captures of hosts\n")
