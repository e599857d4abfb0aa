"""A TLS connection in memory, and its bytes as TCP segments of a capture."""

import contextlib
import ssl
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.analysis.capture.pcap.captures import ACK, SYN, segment

CLIENT, SERVER = ("10.0.0.1", 40000), ("10.0.0.2", 4500)
HEADER_BYTES = 5


def certificate(folder: Path) -> Path:
    """Create a key and its certificate in one file."""
    key, made, both = folder / "key.pem", folder / "made.pem", folder / "certificate.pem"
    kind = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command = [
        "openssl",
        "req",
        "-x509",
        *kind,
        "-subj",
        "/CN=broker",
        "-days",
        "2",
        "-keyout",
        key,
        "-out",
        made,
    ]
    subprocess.run(command, check=True, capture_output=True)
    both.write_text(key.read_text() + made.read_text())
    return both


@dataclass
class Spoken:
    """The data that each end sent, in turn: whether the client sent it, and its bytes."""

    turns: list[tuple[bool, bytes]] = field(default_factory=list)

    def frames(self, client: tuple[str, int] = CLIENT, step: int | None = None) -> list[bytes]:
        """Return the segments, with each turn cut into pieces of `step` bytes."""
        ends = {True: {"src": client, "dst": SERVER}, False: {"src": SERVER, "dst": client}}
        frames = [segment(999, flags=SYN, **ends[True]), segment(4999, flags=SYN | ACK, **ends[False])]
        seq = {True: 1000, False: 5000}
        for by_client, data in self.turns:
            size = step or max(len(data), 1)
            for at in range(0, len(data), size):
                frames.append(segment(seq[by_client], data[at : at + size], **ends[by_client]))
                seq[by_client] += len(data[at : at + size])
        return frames

    def stream(self, *, by_client: bool) -> bytes:
        """All that one end sent."""
        return b"".join(data for who, data in self.turns if who == by_client)


def records(stream: bytes) -> list[tuple[int, int]]:
    """Return the start and end of each record of a stream."""
    bounds = [0]
    while bounds[-1] < len(stream):
        bounds.append(bounds[-1] + HEADER_BYTES + int.from_bytes(stream[bounds[-1] + 3 : bounds[-1] + 5]))
    return list(pairwise(bounds))


def spoken(
    said: Iterable[tuple[bool, bytes]],
    own_certificate: Path,
    key_log: Path | None,
    version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_3,
    alpn: Sequence[str] = (),
    ciphers: str = "",
) -> Spoken:
    """Send plaintexts over a TLS connection, one or more records each; the client logs its keys."""
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(own_certificate)
    client.check_hostname, client.verify_mode = False, ssl.CERT_NONE
    client.maximum_version = version
    if ciphers:
        client.set_ciphers(ciphers)
    for context in (client, server) if alpn else ():
        context.set_alpn_protocols(list(alpn))
    if key_log is not None:
        client.keylog_filename = str(key_log)
    pipes = {each: (ssl.MemoryBIO(), ssl.MemoryBIO()) for each in (True, False)}  # in and out
    ends = {True: client.wrap_bio(*pipes[True]), False: server.wrap_bio(*pipes[False], server_side=True)}
    found = Spoken()

    def carry() -> None:
        for by_client in (True, False):
            if data := pipes[by_client][1].read():
                found.turns.append((by_client, data))
                pipes[not by_client][0].write(data)

    for _ in range(4):
        for end in ends.values():
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
            carry()
    for by_client, plaintext in said:
        ends[by_client].write(plaintext)
        carry()
    return found
