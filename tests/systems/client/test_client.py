"""Clients of programs write the same records as Cutset's nodes, also when they are killed."""

import os
import signal
import subprocess
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from node.core.deliveries import RecordKind, read_records
from node.core.marker import MARKER_BYTES, marked, read_marker
from node.core.program import Readiness
from testbed.programs import CLIENT
from tests.node.programs.minded import WITHIN, program, spec
from tests.node.tcp.launched import launcher, log_lines, records

HERE = Path(__file__).parent
LOOP = (sys.executable, str(HERE / "loop.py"))
LINES = (sys.executable, "-m", "cutset_client.stdio", "sh", str(HERE / "lines.sh"))
TOLD = Readiness(is_told=True, within_us=60_000_000)
WORKLOAD = {"event_size_bytes": 64, "rate_per_s": 200.0, "closed_loop": False}

pytestmark = pytest.mark.network


@pytest.fixture
def launched():
    with launcher(WITHIN) as there:
        yield there


def client(folder, run, workload=WORKLOAD, **given):
    minded = program(*run, is_client=True, ready=TOLD)
    return spec(folder, minded, "r0/client-0", workload=workload, homes=("r0", "r1", "r0"), **given)


def seqs(found, stream=0):
    return [record.first_seq for record in found if record.stream == stream]


@pytest.mark.parametrize("run", [LOOP, LINES], ids=["library", "lines"])
def test_publications_and_deliveries_are_recorded_in_order_byte_by_byte(tmp_path, launched, run):
    one = client(tmp_path, run)
    assert launched.run_client(one, events=20)[0]["code"] == 0
    published, taken, got = (
        records(one, kind) for kind in (RecordKind.PUBLISHED, RecordKind.ACKNOWLEDGED, RecordKind.DELIVERED)
    )
    assert {record.stream for record in published} == {0, 2}
    assert seqs(published) == list(range(1, len(seqs(published)) + 1))
    for other in (taken, got):
        assert [(each.stream, each.first_seq, each.count, each.batch_crc) for each in other] == [
            (each.stream, each.first_seq, each.count, each.batch_crc) for each in published
        ]
    assert [each.running_crc for each in got] == [each.running_crc for each in published]


def test_no_number_is_reused_even_if_the_publisher_is_killed(tmp_path, launched):
    one = client(tmp_path, LOOP)
    launched.start(one)
    launched.wait_ready(1)
    launched.go()
    launched.wait(lambda: launched.delivered.get(one.name, {}).get("0", 0) >= 10)
    os.killpg(launched.all_said("started")[0]["pid"], signal.SIGKILL)
    launched.wait(lambda: launched.all_said("exited"))
    with Path(one.deliveries).open("ab") as file:
        file.write(b"torn")  # as by a machine that lost power
    before = seqs([each for each in read_records(Path(one.deliveries).read_bytes())[0] if each.count])
    launched.delivered.clear()
    launched.start(replace(one, start=1))
    launched.wait_ready(2)
    launched.go()
    launched.wait(lambda: launched.delivered.get(one.name, {}).get("0", 0) >= max(before) + 10)
    launched.drain(clients=1)
    launched.finish(2)
    published = seqs(records(one, RecordKind.PUBLISHED))
    assert len(set(published)) == len(published)
    assert len(records(one, RecordKind.SESSION)) == 2


@pytest.mark.parametrize("contract", ["sent", "acknowledged"])
def test_records_follow_the_contract(tmp_path, launched, contract):
    one = client(tmp_path, LOOP, published=contract, since="subscription")
    launched.run_client(one, events=5)
    found, _ = read_records(Path(one.deliveries).read_bytes())
    published = [record for record in found if record.kind == RecordKind.PUBLISHED]
    got = [record for record in found if record.kind == RecordKind.DELIVERED]
    ahead = [found.index(each) < found.index(other) for each, other in zip(published, got, strict=True)]
    assert set(ahead) == {contract == "sent"}
    asked, told = [RecordKind.SUBSCRIBING] * 3, [RecordKind.SUBSCRIBED] * 3
    assert [record.kind for record in found[:7]] == [RecordKind.SESSION, *asked, *told]
    assert [record.stream for record in found[1:7]] == [0, 1, 2, 0, 1, 2]
    assert {record.kind for record in found[7:]} == {RecordKind.PUBLISHED, RecordKind.DELIVERED}


@pytest.mark.parametrize(
    ("traits", "kinds"),
    [
        (("publisher",), {RecordKind.PUBLISHED, RecordKind.ACKNOWLEDGED, RecordKind.DELIVERED}),
        (("subscriber",), {RecordKind.SUBSCRIBING, RecordKind.SUBSCRIBED}),
    ],
)
def test_a_program_publishes_and_subscribes_according_to_its_role(tmp_path, launched, traits, kinds):
    one = client(tmp_path, LINES, since="subscription", traits=traits)
    if "publisher" in traits:
        launched.run_client(one, events=5)
    else:
        launched.start(one)
        launched.wait_ready(1)
        launched.finish(1)
    found, _ = read_records(Path(one.deliveries).read_bytes())
    assert {record.kind for record in found} == {RecordKind.SESSION} | kinds


def test_an_invalid_payload_is_reported_and_not_counted(tmp_path, launched):
    code = """
import cutset_client
with cutset_client.connect() as session:
    subscriber = session.subscriber()
    assert not subscriber.got(b"x" * 64, "elsewhere")
    session.ready()
"""
    one = client(tmp_path, (sys.executable, "-c", code))
    launched.start(one)
    launched.wait_ready(1)
    assert launched.finish(1)[0]["code"] == 0
    [told] = [line for line in log_lines(one) if line["event"] == "not_an_event"]
    assert (told["topic"], told["bytes"]) == ("elsewhere", 64)
    assert records(one, RecordKind.DELIVERED) == []


def test_the_wheel_needs_no_other_package(tmp_path):
    """Check that the wheel has all modules that it imports, also the two files shared with Cutset."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    copy = tmp_path / "client"
    subprocess.run(["cp", "-rL", str(CLIENT), str(copy)], check=True)
    subprocess.run([*build, "--wheel-dir", str(tmp_path), str(copy)], check=True, capture_output=True)
    [wheel] = tmp_path.glob("*.whl")
    code = "import cutset_client.stdio; print(cutset_client.__file__); cutset_client.connect()"
    said = subprocess.run(
        [sys.executable, "-S", "-E", "-c", f"import sys; sys.path.insert(0, {str(wheel)!r}); {code}"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert said.stdout.startswith(str(wheel)), said.stderr
    assert "CUTSET_CLIENT is not set: clients are started by `cutset run`" in said.stderr


def test_a_marker_is_read_back_and_a_changed_payload_is_detected():
    payload = marked(3, 7, 100, 1_000_000_007)
    assert len(payload) == 100
    found = read_marker(payload)
    assert (found.stream, found.seq, found.time_ns, found.is_whole) == (3, 7, 1_000_000_007, True)
    for at in (10, MARKER_BYTES - 1, 99):
        changed = bytearray(payload)
        changed[at] ^= 1
        assert not read_marker(bytes(changed)).is_whole
    assert read_marker(payload[: MARKER_BYTES - 1]) is None
    assert read_marker(b"x" * 100) is None
    assert zlib.crc32(marked(3, 7, 28, 1)) != zlib.crc32(marked(3, 8, 28, 1))


BROKEN_THREAD = """\
import threading, cutset_client
with cutset_client.connect() as session:
    session.subscriber()
    session.ready()
    threading.Thread(target=lambda: [][0]).start()
"""
UNSAID = """\
import cutset_client, cutset_client.publisher
cutset_client.publisher.UNSAID_S = 0
with cutset_client.connect() as session:
    publisher = session.publisher()
    session.ready()
    for event in publisher:
        pass
"""


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (BROKEN_THREAD, "IndexError: list index out of range"),
        (UNSAID, "RuntimeError: `sent` was called for none of 100 events: call it before passing on each"),
    ],
)
def test_a_client_that_fails_ends_and_reports_why(tmp_path, launched, code, why):
    quick = WORKLOAD | {"rate_per_s": 5000.0}
    launched.start(client(tmp_path, (sys.executable, "-c", code), quick))
    launched.wait_ready(1)
    launched.go()
    launched.wait(lambda: launched.all_said("exited"))
    [failed] = launched.all_said("failed")
    assert failed["problem"] == f"{sys.executable} ended by itself, with exit code 1; its last words: {why}"
