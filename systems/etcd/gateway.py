"""etcd's API as JSON over HTTP (its gRPC gateway), and the base64 in which that has keys and values."""

import base64
import contextlib
import http.client
import json
import socket


def text(data: bytes) -> str:
    return base64.b64encode(data).decode()


class Gateway:
    """A connection to one member, made again when it failed."""

    def __init__(self, address: str, port: str, timeout_s: float) -> None:
        self._connection = http.client.HTTPConnection(address, int(port), timeout_s)

    def open(self, what: str, given: dict) -> http.client.HTTPResponse:
        """The answer to a call. Raises OSError or HTTPException."""
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
        """For another thread than the one that reads an answer: that comes to its end."""
        if (connected := self._connection.sock) is not None:
            with contextlib.suppress(OSError):  # it is broken already
                connected.shutdown(socket.SHUT_RDWR)
