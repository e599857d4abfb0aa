"""etcd's API as JSON over HTTP (its gRPC gateway), with keys and values in base64."""

import base64
import contextlib
import http.client
import json
import socket


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Gateway:
    """A connection to one member, reopened after a failure."""

    def __init__(self, address: str, port: str, timeout_s: float) -> None:
        self._connection = http.client.HTTPConnection(address, int(port), timeout_s)

    def open(self, what: str, given: dict) -> http.client.HTTPResponse:
        """Call an operation; returns the answer. Raises OSError or HTTPException."""
        try:
            self._connection.request("POST", f"/v3/{what}", json.dumps(given))
            answer = self._connection.getresponse()
            if answer.status != http.HTTPStatus.OK:
                raise ConnectionError(answer.read().decode(errors="replace"))
        except (OSError, http.client.HTTPException):
            self._connection.close()
            raise
        return answer

    def stop(self) -> None:
        """End the answer that another thread reads."""
        if (connected := self._connection.sock) is not None:
            with contextlib.suppress(OSError):  # it is broken already
                connected.shutdown(socket.SHUT_RDWR)
