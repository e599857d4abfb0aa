"""One connection to a sender: sends a transfer's requests and passes it the answers until all files arrived.

Several requests are pending at a time, so that the round trip does not limit the throughput; they are small,
so that both ends cannot be blocked in writes at once. The folder is listed again every POLL_S during the run,
and at least once more when it is over.
"""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from testbed.machines.shipping.limits import DiskBudget, RateBudget
from testbed.machines.shipping.names import ShippingError
from testbed.machines.shipping.protocol import (
    FrameReader,
    Hash,
    Kind,
    Read,
    decode_data,
    decode_digest,
    decode_listing,
    decode_text,
    encode,
    encode_request,
)
from testbed.machines.shipping.result import ShippingState
from testbed.machines.shipping.transfer import FileTransfer
from testbed.machines.ssh.ssh import RemoteProcess

POLL_S = 0.5
PAUSE_S = 0.05
"""The longest wait between two checks whether the run is over."""
UNDER_WAY_MAX = 12
"""Pending requests; at 1 MiB each enough for 1 Gbit/s over 100 ms."""
BUSY_MAX = 1 << 16
"""The most BUSY frames before an answer."""


class DiskLimitError(Exception):
    """The disk limit here is reached."""


class _StoppedError(Exception):
    """The session has to end now, incomplete."""


@dataclass(slots=True)
class SenderSession:
    """A session with one sender.

    over: returns whether the run is over; heard: called with the number of bytes received; show: called with
    the state; stopped: returns whether to end now, incomplete; wait: waits this number of seconds, or less.
    """

    stream: RemoteProcess
    transfer: FileTransfer
    rate: RateBudget
    disk: DiskBudget
    over: Callable[[], bool]
    heard: Callable[[int], None]
    show: Callable[[ShippingState], None]
    stopped: Callable[[], bool]
    wait: Callable[[float], object]
    _frames: FrameReader = field(init=False)
    _pending: deque[Read | Hash] = field(default_factory=deque)
    _listing_bytes: int = 0  # of the listing before

    def __post_init__(self) -> None:
        """Read frames from the stream."""
        self._frames = FrameReader(self._read)

    def run(self) -> bool:
        """Make passes until all files have arrived; returns false if it was stopped before.

        Raises OSError, EOFError or TestbedError if the connection breaks, ShippingError for a malformed
        message, DiskLimitError if no more data fits.
        """
        self.transfer.connected()
        self._frames.greet()
        try:
            while not self._pass(over=self.over()):
                pass
        except _StoppedError:
            return False
        finally:
            for asked in self._pending:
                self._give_back(asked)
        return True

    def _pass(self, *, over: bool) -> bool:
        """Ship what is listed now; returns whether all files have arrived."""
        self._book(self._listing_bytes)
        self.stream.write(encode(Kind.LIST))
        kind, body = self._answer()
        if kind is not Kind.LISTING:
            raise ShippingError(f"{kind.name} is not a listing")
        self.rate.give_back(self._listing_bytes - len(body))
        self._listing_bytes = len(body)
        self.transfer.listed(decode_listing(body), over=over)
        self._exchange(self.transfer.reads(lambda: self.rate.chunk_bytes), ShippingState.SHIPPING)
        if over:
            self._exchange(self.transfer.hashes(), ShippingState.CHECKING)
            return not self.transfer.needs_pass
        self.show(ShippingState.FOLLOWING)
        ends_s = time.monotonic() + POLL_S
        while time.monotonic() < ends_s and not self.over():
            self._check()
            self.wait(PAUSE_S)
        return False

    def _exchange(self, requests: Iterable[Read | Hash], state: ShippingState) -> None:
        """Send these requests, and handle all their answers."""
        for request in requests:
            self.show(state)
            if isinstance(request, Read):
                self._book(request.length)
                if problem := self.disk.take(request.length):
                    self.rate.give_back(request.length)
                    raise DiskLimitError(problem)
            self.stream.write(encode_request(request))
            self._pending.append(request)
            if len(self._pending) >= UNDER_WAY_MAX:
                self._take_answer()
        while self._pending:
            self.show(state)
            self._take_answer()

    def _book(self, size: int) -> None:
        """Wait until the rate allows this number of bytes."""
        self._check()
        while (wait_s := self.rate.book(size, time.monotonic())) > 0:
            if self._pending:
                self._take_answer()
            else:
                self._check()
                self.wait(min(wait_s, PAUSE_S))

    def _take_answer(self) -> None:
        """Handle the answer to the first pending request."""
        self._check()
        kind, body = self._answer()
        asked = self._pending[0]
        match kind, asked:
            case Kind.DATA, Read():
                self._take_data(asked, body)
                return
            case Kind.DIGEST, Hash():
                self.transfer.digest(asked, decode_digest(body))
            case Kind.CHANGED, _:
                self.transfer.changed(asked)
            case Kind.GONE, _:
                self.transfer.gone(asked, decode_text(body))
            case _:
                raise ShippingError(f"{kind.name} does not answer the pending request")
        self._give_back(self._pending.popleft())

    def _take_data(self, asked: Read, body: bytes) -> None:
        data = decode_data(body, asked.length)
        self._pending.popleft()
        self.rate.give_back(asked.length - len(body))
        try:
            used = self.transfer.took(asked, data)
        except OSError as error:  # `took` raises only if the disk is full
            raise DiskLimitError(f"writing here: {error.strerror}") from None
        if not used:
            self.disk.give_back(asked.length)

    def _give_back(self, asked: Read | Hash) -> None:
        """Release the bookings for an answer without data."""
        if isinstance(asked, Read):
            self.rate.give_back(asked.length)
            self.disk.give_back(asked.length)

    def _answer(self) -> tuple[Kind, bytes]:
        """Return the next frame that is not BUSY."""
        for _ in range(BUSY_MAX):
            kind, body = self._frames.next()
            if kind is Kind.FAILED:
                raise ShippingError(f"the sender failed: {decode_text(body)}")
            if kind is not Kind.BUSY:
                return kind, body
        raise ShippingError(f"it answers BUSY more than {BUSY_MAX} times")

    def _check(self) -> None:
        if self.stopped():
            raise _StoppedError

    def _read(self, size: int) -> bytes:
        data = self.stream.read(size)
        self.heard(len(data))
        return data
