"""Real processes over loopback TCP, through the launcher: a whole small run, deaths, restarts, garbage."""

import os
import select
import signal
import socket
import struct
import time
from dataclasses import replace

import pytest

from node.core.deliveries import RecordKind
from node.core.epochs import NUMBER_BITS
from node.core.framing import HEADER, FrameBuffer
from node.protocols.sprinkler.messages import CODEC, Hello, Refusal, Refused, Role
from tests.node.tcp.launched import WAIT_S, Launched, launcher, log_lines, loopback_specs, records


def batches(found):
    return [(record.stream, record.first_seq, record.count, record.batch_crc) for record in found]


def of_role(specs, role):
    return [spec for spec in specs if spec.role == role]


def start_all(launched: Launched, specs):
    for spec in specs:
        launched.start(spec)
    launched.wait_ready(len(specs))


def wait_delivered(launched, name, stream, seq):
    launched.wait(lambda: launched.delivered.get(name, {}).get(str(stream), 0) >= seq)


def test_a_run_delivers_every_batch_once_and_in_order_and_ends_in_order(tmp_path):
    specs = loopback_specs(tmp_path, regions=3, clients=2)
    with launcher() as launched:
        start_all(launched, specs)
        launched.go()
        wait_delivered(launched, "r0/client-0", 2, 1000)
        launched.drain(clients=6)
        ended = launched.finish(len(specs))
    assert {(end["code"], end["signal"]) for end in ended} == {(0, None)}
    for driver in of_role(specs, "driver"):
        published = batches(records(driver, RecordKind.PUBLISHED))
        stream = driver.owned_by(driver.region)[0]
        assert sum(count for _, _, count, _ in published) >= 1000 or stream != 2
        for client in of_role(specs, "client"):
            delivered = batches(records(client, RecordKind.DELIVERED))
            assert [batch for batch in delivered if batch[0] == stream] == published
    switched = [line for line in log_lines(specs[0]) if line["event"] == "source_switched"]
    last = {
        line["stream"]: (line["to"], line["why"]) for line in switched
    }  # the first node that was up is the earlier source
    assert last == {1: ("r1/proxy-0", "direct"), 2: ("r2/proxy-0", "direct")}


def test_a_killed_client_is_reported_and_its_restart_goes_on_in_the_same_record(tmp_path):
    specs = loopback_specs(tmp_path, regions=2)
    client = next(spec for spec in specs if spec.name == "r1/client-0")
    with launcher() as launched:
        start_all(launched, specs)
        launched.go()
        wait_delivered(launched, client.name, 0, 500)
        launched.signal(client, signal.SIGKILL)
        (ended,) = launched.wait(lambda: launched.all_said("exited"))
        assert (ended["name"], ended["code"], ended["signal"]) == (client.name, None, signal.SIGKILL)
        del launched.delivered[client.name]
        launched.start(client)
        launched.drain(clients=2)
        launched.finish(1 + len(specs))
    driver = next(spec for spec in specs if spec.name == "r0/driver-0")
    published = batches(records(driver, RecordKind.PUBLISHED))
    assert len(records(client, RecordKind.SESSION)) == 2
    delivered = [batch for batch in batches(records(client, RecordKind.DELIVERED)) if batch[0] == 0]
    assert delivered[-len(published) :] == published


def test_only_a_restarted_driver_is_signalled_to_go(tmp_path):
    specs = loopback_specs(tmp_path, regions=2)
    driver = next(spec for spec in specs if spec.name == "r1/driver-0")
    with launcher() as launched:
        start_all(launched, specs)
        launched.tell("go", start_ns=time.time_ns(), late_us=0, name=driver.name)
        wait_delivered(launched, "r0/client-0", 1, 200)
        assert launched.published.get("r0/driver-0", {}).get("0", 0) == 0
        launched.finish(len(specs))


def test_a_killed_proxy_takes_its_stream_back_and_its_driver_goes_on(tmp_path):
    specs = loopback_specs(tmp_path, regions=2)
    proxy = next(spec for spec in specs if spec.name == "r1/proxy-0")
    with launcher() as launched:
        start_all(launched, specs)
        launched.go()
        wait_delivered(launched, "r0/client-0", 1, 500)
        launched.signal(proxy, signal.SIGKILL)
        launched.wait(lambda: launched.all_said("exited"))
        launched.start(proxy)
        # It had nothing on disk: its stream goes on in another epoch, which is known before its first event.
        wait_delivered(launched, "r0/client-0", 1, (1 << NUMBER_BITS) + 500)
        launched.drain(clients=2)
        launched.finish(1 + len(specs))
    assert [line["stream"] for line in log_lines(proxy) if line["event"] == "stream_taken"] == [1, 1]


def test_a_driver_is_silent_only_when_it_has_the_answer_to_all_that_it_published(tmp_path):
    specs = loopback_specs(tmp_path, regions=1)
    proxy, driver, client = specs
    with launcher() as launched:
        start_all(launched, specs)
        launched.go()
        wait_delivered(launched, client.name, 0, 200)
        launched.signal(proxy, signal.SIGSTOP)
        wait_for_reports(launched, driver, lambda one, other: one["published"] == other["published"])
        launched.tell("stop_drivers")
        wait_for_reports(launched, driver, lambda one, other: not (one["silent"] or other["silent"]))
        launched.signal(proxy, signal.SIGCONT)
        launched.drain(clients=1)
        launched.finish(len(specs))
    assert batches(records(client, RecordKind.DELIVERED)) == batches(records(driver, RecordKind.PUBLISHED))


def wait_for_reports(launched, spec, condition):
    """Until two reports of progress that come one after the other from now on are so."""
    seen = len(launched.said)

    def come():
        mine = [m for m in launched.said[seen:] if m["did"] == "progress" and m["name"] == spec.name]
        return len(mine) > 3 and condition(*mine[-2:])

    launched.wait(come)


def test_when_the_launcher_dies_so_do_its_nodes(tmp_path):
    specs = loopback_specs(tmp_path, regions=1)
    with launcher() as launched:
        start_all(launched, specs)
        pids = [message["pid"] for message in launched.all_said("started")]
        handles = [os.pidfd_open(pid) for pid in pids]
        launched.process.kill()
        for handle in handles:
            wait_for_end(handle)


def wait_for_end(handle):
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    assert poller.poll(1000 * WAIT_S), "a node outlived its launcher"
    os.close(handle)


def exchange(spec, data):
    """Return a proxy's answers to these bytes, until it closes the connection."""
    member = next(member for member in spec.members if member.name == spec.name)
    buffer = FrameBuffer()
    answers = []
    with socket.create_connection((member.address, spec.parameters["port"]), timeout=30) as raw:
        raw.sendall(data)
        while count := raw.recv_into(buffer.room()):
            answers += [CODEC.decode(frame) for frame in buffer.filled(count)]
    return answers


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"GET / HTTP/1.1\r\nHost: proxy\r\n\r\n", "version"),
        (HEADER.pack(4, 2, 1, 0), "protocol version 2, expected 1"),
        (HEADER.pack(1 << 30, 1, 1, 0), "frame length"),
        (struct.pack(">IBBH", 4, 1, 77, 0), "unknown message type 77"),
    ],
)
def test_garbage_is_answered_and_everyone_else_goes_on(tmp_path, data, reason):
    specs = loopback_specs(tmp_path, regions=1)
    with launcher() as launched:
        start_all(launched, specs)
        launched.go()
        greeting, refused = exchange(specs[0], data)
        assert isinstance(greeting, Hello)
        assert greeting.role == Role.PROXY
        assert isinstance(refused, Refused)
        assert refused.code == Refusal.MALFORMED
        assert reason in refused.reason
        wait_delivered(
            launched, "r0/client-0", 0, launched.delivered.get("r0/client-0", {}).get("0", 0) + 100
        )
        assert {(end["code"]) for end in launched.finish(len(specs))} == {0}
    assert [line["reason"] for line in log_lines(specs[0]) if line["event"] == "refused_peer"] == [
        refused.reason
    ]


def test_a_node_that_cannot_run_says_why_and_the_others_stay(tmp_path, capfd):
    specs = loopback_specs(tmp_path, regions=1)
    broken = replace(specs[2], name="r0/client-9", netns="/nowhere/ns/net")
    with launcher() as launched:
        launched.start(broken)
        (ended,) = launched.wait(lambda: launched.all_said("exited"))
        assert ended["code"] not in (0, None)
        start_all(launched, specs)
        launched.finish(1 + len(specs))
    assert "/nowhere/ns/net" in capfd.readouterr().err
