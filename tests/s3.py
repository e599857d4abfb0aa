"""An S3 on loopback, for tests of what is stored elsewhere: moto's server, a process of its own."""

import os
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.node.tcp.launched import free_port

CLIENTS = Path(__file__).parents[1] / ".systems" / "python"
WAIT_S = 60.0
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "us-east-1",
}
SERVER = """
from moto.moto_server.threaded_moto_server import ThreadedMotoServer
ThreadedMotoServer("127.0.0.1", {}).start()
input()
"""


@contextmanager
def s3_server() -> Iterator[str]:
    """Run an S3 with a bucket `lab`; yield its options as part of a URL."""
    port = free_port()
    command = [sys.executable, "-c", SERVER.format(port)]
    environment = os.environ | {"PYTHONPATH": str(CLIENTS)}
    with subprocess.Popen(
        command, env=environment, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as server:
        deadline = time.monotonic() + WAIT_S
        while True:
            try:
                put = urllib.request.Request(f"http://127.0.0.1:{port}/lab", method="PUT")
                urllib.request.urlopen(put, timeout=5).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                assert server.poll() is None
                time.sleep(0.1)
        yield f"endpoint_override=127.0.0.1:{port}&scheme=http"
        server.kill()
