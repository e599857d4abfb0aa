"""One connection to a sender: sends a transfer's requests and passes it the answers until all files arrived.

Several requests are pending at a time, so that the round trip does not limit the throughput; they are small,
so that both ends cannot be blocked in writes at once. The folder is listed again every POLL_S during the run,
and once more when it is over.
"""

import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from testbed.machines.shipping.frames import FrameReader, Kind, ShippingError, encode
from testbed.machines.shipping.limits import DiskBudget, RateBudget
from testbed.machines.shipping.messages import (
    Hash,
    Listing,
    Read,
    decode_data,
    decode_digest,
    decode_message,
    decode_text,
    encode_message,
)
from testbed.machines.shipping.result import ShippingState
from testbed.machines.shipping.transfer import FileTransfer, PendingRequest

POLL_S = 0.5
PAUSE_S = 0.05
"""The longest wait between two checks whether the run is over."""
UNDER_WAY_MAX = 12
"""Pending requests; at 1 MiB each enough for 1 Gbit/s over 100 ms."""
LISTINGS_MAX = 4096
"""Parts of one listing."""
BUSY_MAX = 1 << 16
"""The most BUSY frames before an answer."""


class SenderConnection(Protocol):
    """A connection to a sender. Its methods raise OSError or TestbedError when it breaks."""

    def read(self, size: int, /) -> bytes:
        """Read at most `size` bytes, b"" at the end."""

    def write(self, data: bytes, /) -> object:
        """Send all bytes."""

    def said(self) -> str:
        """Return the other side's error output."""

    def close(self) -> object:
        """Close the stream and wake a blocked reader; idempotent."""


class DiskLimitError(Exception):
    """The disk limit here is reached."""


class SenderSession:
    """A session with one sender.

    over: returns whether the run is over; heard: called with the number of bytes received; show: called with
    the state; stopped: returns whether to end now, incomplete; wait: waits this number of seconds, or less.
    """

    def __init__(
        self,
        stream: SenderConnection,
        transfer: FileTransfer,
        rate: RateBudget,
        disk: DiskBudget,
        *,
        over: Callable[[], bool],
        heard: Callable[[int], None],
        show: Callable[[ShippingState], None],
        stopped: Callable[[], bool],
        wait: Callable[[float], object] = time.sleep,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._frames = FrameReader(self._read)
        self._transfer = transfer
        self._rate = rate
        self._disk = disk
        self._over = over
        self._heard = heard
        self._show = show
        self._stopped = stopped
        self._wait = wait
        self._now_s = now_s
        self._under_way: deque[PendingRequest | None] = deque()  # None: a LIST
        self._listed_s = float("-inf")
        self._final = False
        self._busy = 0
        self._waiting_since_s: float | None = None

    def run(self) -> bool:
        """Exchange requests and answers until all files have arrived; returns false if it was stopped before.

        Raises OSError, EOFError or TestbedError if the connection breaks, ShippingError for a malformed
        message, DiskLimitError if no more data fits.
        """
        self._transfer.connected()
        self._frames.greet()
        try:
            while not self._stopped():
                pause_s = self._ask()
                if self._under_way:
                    self._show(self._doing())
                    self._answer()
                elif self._final and not self._transfer.stale and pause_s is None:
                    return True
                else:
                    self._show(ShippingState.FOLLOWING if pause_s is None else ShippingState.SHIPPING)
                    self._wait(PAUSE_S if pause_s is None else min(pause_s, PAUSE_S))
            return False
        finally:
            for asked in self._under_way:
                self._give_back(asked)

    def silent_s(self) -> float:
        """Return the seconds since an awaited answer's last bytes; a slow answer is not silence."""
        since_s = self._waiting_since_s
        return 0.0 if since_s is None else self._now_s() - since_s

    def _doing(self) -> ShippingState:
        reading = any(asked and isinstance(asked.request, Read) for asked in self._under_way)
        hashing = any(asked and isinstance(asked.request, Hash) for asked in self._under_way)
        return (
            ShippingState.SHIPPING
            if reading
            else ShippingState.CHECKING
            if hashing
            else ShippingState.FOLLOWING
        )

    def _ask(self) -> float | None:
        """Send as many requests as may be pending; returns how long the rate makes it wait, or None."""
        requests = self._list_request()
        wait_s = None
        while len(self._under_way) < UNDER_WAY_MAX:
            request = self._transfer.next(self._rate.chunk_bytes)
            if request is None:
                break
            if isinstance(request, Read):
                wait_s = self._rate.book(request.length, self._now_s())
                if wait_s > 0:
                    break
                wait_s = None
                problem = self._disk.take(request.length)
                if problem:
                    self._rate.give_back(request.length)
                    raise DiskLimitError(problem)
            self._under_way.append(self._transfer.asked(request))
            requests += encode_message(request)
        if requests:
            self._stream.write(requests)
        return wait_s

    def _list_request(self) -> bytes:
        """Return a LIST frame if one is due, else b""."""
        if None in self._under_way:
            return b""
        now_s = self._now_s()
        ending = not self._final and self._over()
        again = self._final and self._transfer.stale and not self._under_way
        if ending or again or (not self._final and now_s - self._listed_s >= POLL_S):
            self._listed_s = now_s
            self._final = self._final or ending
            self._under_way.append(None)
            return encode(Kind.LIST)
        return b""

    def _answer(self) -> None:
        kind, body = self._frames.next()
        if kind is Kind.BUSY:
            self._busy += 1
            if self._busy > BUSY_MAX:
                raise ShippingError(f"it answers BUSY more than {BUSY_MAX} times")
            return
        self._busy = 0
        if kind is Kind.FAILED:
            raise ShippingError(f"the sender failed: {decode_text(body)}")
        asked = self._under_way[0]
        if asked is None:
            self._take_listing(kind, body)
            return
        match kind, asked.request:
            case Kind.DATA, Read(length=length):
                self._take_data(asked, body, length)
                return
            case Kind.DIGEST, Hash():
                self._transfer.digest(asked, decode_digest(body))
            case Kind.CHANGED, _:
                self._transfer.changed(asked)
            case Kind.GONE, _:
                self._transfer.gone(asked, decode_text(body))
            case _:
                raise ShippingError(f"{kind.name} does not answer the pending request")
        self._give_back(self._under_way.popleft())

    def _take_listing(self, kind: Kind, body: bytes) -> None:
        """Handle all parts of the answer to a LIST."""
        for _ in range(LISTINGS_MAX):
            if kind is not Kind.LISTING:
                raise ShippingError(f"{kind.name} is not a listing")
            listing = decode_message(Listing, body)
            self._transfer.listed(listing)
            if not listing.more:
                break
            kind, body = self._frames.next()
        else:
            raise ShippingError(f"a listing of more than {LISTINGS_MAX} parts")
        self._under_way.popleft()
        if self._final:
            self._transfer.run_is_over()

    def _take_data(self, asked: PendingRequest, body: bytes, length: int) -> None:
        data = decode_data(body, length)
        self._under_way.popleft()
        self._rate.give_back(length - len(body))
        try:
            used = self._transfer.took(asked, data)
        except OSError as error:  # `took` raises only if the disk is full
            raise DiskLimitError(f"writing here: {error.strerror}") from None
        if not used:
            self._disk.give_back(length)

    def _give_back(self, asked: PendingRequest | None) -> None:
        """Release the bookings for an answer without data."""
        if asked is not None and isinstance(asked.request, Read):
            self._rate.give_back(asked.request.length)
            self._disk.give_back(asked.request.length)

    def _read(self, size: int) -> bytes:
        self._waiting_since_s = self._now_s()
        try:
            data = self._stream.read(size)
        finally:
            self._waiting_since_s = None
        self._heard(len(data))
        return data
