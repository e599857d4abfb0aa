"""Bad input to real processes: REFUSED to the sender, one line in the log, and no effect on others."""

import select
import socket
from collections import Counter
from contextlib import contextmanager
from random import Random

import pytest

from node.core.deliveries import RecordKind
from node.core.errors import RemoteProtocolError
from node.core.framing import FRAME_LIMIT_BYTES, HEADER, FrameBuffer, frames_in
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.messages import CODEC, Hello, Refusal, Refused, Role
from tests.node.tcp.launched import batches, launcher, logged, loopback_specs

HELLO = Hello(Role.DRIVER, 1, "r0/driver-7")
CLIENT = Hello(Role.CLIENT, 1, "r0/client-7")
PUBLISH = wire.Publish(0, 0, 0, 1, 1, 4, 0, b"mine")


def encoded(*messages):
    return b"".join(buffer for message in messages for buffer in CODEC.encode(message, 1 << 30))


@contextmanager
def live(tmp_path):
    """Run two publishing regions; at the end check that every client has every event and every process is
    alive.
    """
    specs = loopback_specs(tmp_path, regions=2, configuration=True)
    with launcher() as launched:
        launched.start_all(specs)
        yield {spec.name: spec for spec in specs}
        launched.wait_published(1000)
        launched.drain(clients=2)
        assert {(end["code"], end["signal"]) for end in launched.finish(len(specs))} == {(0, None)}
    for driver in (spec for spec in specs if spec.role == "driver"):
        stream = driver.owned_by(driver.region)[0]
        published = batches(driver, RecordKind.PUBLISHED, stream)
        assert published
        for client in (spec for spec in specs if spec.role == "client"):
            assert batches(client, RecordKind.DELIVERED, stream) == published


def told(spec, data):
    """Return the REFUSED answer to these bytes."""
    address = next(member.address for member in spec.members if member.name == spec.name)
    buffer = FrameBuffer()
    with socket.create_connection((address, spec.parameters["port"]), timeout=30) as raw:
        raw.sendall(data)
        while count := raw.recv_into(buffer.room()):
            for frame in buffer.filled(count):
                message = CODEC.decode(frame)
                if isinstance(message, Refused):
                    return message
    raise AssertionError("closed without a word")


CASES = {
    "unknown stream": (
        encoded(CLIENT, wire.Subscribe(77, 0)),
        Refusal.UNKNOWN_STREAM,
        "stream 77 is not known",
    ),
    "publish on an unknown stream": (
        encoded(HELLO, wire.Publish(0, 0, 77, 1, 1, 4, 0, b"mine")),
        Refusal.UNKNOWN_STREAM,
        "does not own stream 77",
    ),
    "publish on a stream of another proxy": (
        encoded(HELLO, wire.Publish(0, 0, 1, 1, 1, 4, 0, b"mine")),
        Refusal.NOT_OWNER,
        "r0/proxy-0 does not own stream 1",
    ),
    "frame over the limit": (
        encoded(HELLO, wire.Publish(0, 0, 0, 1, 1, FRAME_LIMIT_BYTES, 0, bytes(FRAME_LIMIT_BYTES))),
        Refusal.MALFORMED,
        f"outside 4 to {FRAME_LIMIT_BYTES - 4}",
    ),
    "garbage": (b"GET / HTTP/1.1\r\nHost: proxy\r\n\r\n", Refusal.MALFORMED, "protocol version"),
    "another protocol version": (
        HEADER.pack(4 + 9, 2, 1, 0) + bytes(9),
        Refusal.MALFORMED,
        "protocol version 2, expected 1",
    ),
    "a frame that is too long": (HEADER.pack(1 << 30, 1, 1, 0), Refusal.MALFORMED, "frame length"),
    "an unknown message": (HEADER.pack(4, 1, 77, 0), Refusal.MALFORMED, "unknown message type 77"),
    "a message of another role": (
        encoded(CLIENT, wire.Token(1)),
        Refusal.UNEXPECTED,
        "unexpected TOKEN",
    ),
    "no greeting": (encoded(PUBLISH), Refusal.UNEXPECTED, "unexpected PUBLISH"),
    "a proxy that is none": (
        encoded(Hello(Role.PROXY, 1, "r9/proxy-0")),
        Refusal.UNEXPECTED,
        "no proxy r9/proxy-0 belongs to this run",
    ),
    "a chain that is none": (
        encoded(
            Hello(Role.CONFIGURATION, 1, "r0/configuration-9"),
            wire.Configuration(2**64 - 1, 0, ()),
        ),
        Refusal.MALFORMED,
        "CONFIGURATION with number",
    ),
}


def test_bad_peers_get_the_reason_and_others_are_unaffected(tmp_path):
    reasons = []
    with live(tmp_path) as nodes:
        for case, (data, code, reason) in CASES.items():
            refused = told(nodes["r0/proxy-0"], data)
            assert (refused.code, reason in refused.reason) == (code, True), (case, refused)
            reasons.append(refused.reason)
        said = still_sending(nodes["r0/proxy-0"])
        assert (type(said[0]), type(said[-1])) == (Hello, Refused)
        reasons.append(said[-1].reason)
    lines = logged(nodes["r0/proxy-0"], "refused_peer")
    assert Counter(reasons) <= Counter(line["reason"] for line in lines)
    codes = {code.name.lower() for _, code, _ in CASES.values()}
    assert {line["code"] for line in lines} <= {*codes, "not_head"}


def still_sending(spec):
    """Continue to send after the answer: if the node closed with unread data, a reset would reach the
    sender.
    """
    address = next(member.address for member in spec.members if member.name == spec.name)
    with socket.create_connection((address, spec.parameters["port"]), timeout=30) as raw:
        raw.sendall(bytes(64))
        assert select.select([raw], [], [], 30)[0]
        for _ in range(64):
            raw.sendall(bytes(65_536))
        raw.shutdown(socket.SHUT_WR)
        answer = b"".join(iter(lambda: raw.recv(4096), b""))
    return [CODEC.decode(frame) for frame in frames_in(answer)]


@pytest.mark.slow
def test_any_bytes_to_any_process_affect_no_other_process(tmp_path):
    rng = Random(3)
    valid = [encoded(HELLO), encoded(CLIENT), encoded(CLIENT, wire.Subscribe(0, 0)), encoded(HELLO, PUBLISH)]
    with live(tmp_path) as nodes:
        for turn in range(120):
            spec = nodes[rng.choice(["r0/proxy-0", "r0/client-0", "r0/configuration-0", "r1/proxy-0"])]
            data = bytearray(rng.choice([b"", *valid[:3]]) + rng.randbytes(rng.randrange(1, 400)))
            if turn % 3 == 0:  # a good frame's header and any body
                data[:0] = HEADER.pack(4 + 20, 1, rng.randrange(1, 20), 0) + rng.randbytes(20)
            send_and_leave(spec, bytes(data))


def send_and_leave(spec, data):
    """Send bytes, check that answers are well-formed, and close the connection."""
    address = next(member.address for member in spec.members if member.name == spec.name)
    buffer = FrameBuffer()
    with socket.create_connection((address, spec.parameters["port"]), timeout=30) as raw:
        raw.sendall(data)
        raw.shutdown(socket.SHUT_WR)
        try:
            while count := raw.recv_into(buffer.room()):
                for frame in buffer.filled(count):
                    CODEC.decode(frame)
        except ConnectionError:
            return
        except RemoteProtocolError as error:
            raise AssertionError("a node sent what is no message") from error
