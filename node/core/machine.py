"""Sans-I/O interface: inputs and effects of a protocol's state machine.

A machine receives inputs with the current time and returns effects, in the order in which they are to be
executed. It owns no clock, socket, process or source of randomness (a generator is injected). `node.tcp`
executes the effects over TCP and real time, `node.sim` in virtual time; the same inputs give the same
effects.

Connections are FIFO, reliable and identified by numbers that the caller chooses. Messages are the protocol's
message objects: its codec encodes and decodes bytes outside of the machine. Times are microseconds of a
monotonic clock.

Flow control: a machine may send a bounded burst on a connection at any time. `AwaitWritable` requests a
single `Writable` when that connection has taken nearly everything; until then the machine must not send it
bulk data.

Storage: a machine appends state that must survive the process to its log with `Append`, as messages like
those on the wire. A log is a sequence of segments that the machine numbers: it writes to the last one, begins
the next one with a greater number, and may replace earlier ones with their still useful contents (`Rewrite`).
`Synced` reports how many `Append` effects are durable, `StorageFailed` that none can be stored for now; at
the next start `Started.stored` returns everything in order. A process without storage keeps nothing, and
every `Append` counts as synced at once: a machine that relies on storage must require it in its constructor.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Any, Protocol

from node.core.content.value import value
from node.core.deliveries import RecordKind

Timer = tuple[str, ...]  # a timer's name; setting it again moves it


class Randomness(Protocol):
    """The generator that is injected into a machine; `random.Random` is one."""

    def random(self) -> float:
        """Return a number, uniform in [0, 1)."""

    def uniform(self, a: float, b: float) -> float:
        """Return a number, uniform between a and b."""

    def randrange(self, start: int, /) -> int:
        """Return an integer, uniform among 0 to start - 1."""


# --- Inputs


@value
class StoredSegment:
    """A segment of the log as an earlier process left it. Records that are not completely on disk are left
    out.
    """

    number: int
    messages: Sequence[Any]


@value
class Started:
    """The process runs. The first input, once.

    stored: the segments of its log, in order; they are read from disk during iteration, so iterate once and
    at once. Iteration raises StorageError (`node.core.errors`) if the log is damaged. New segments must have
    greater numbers.
    """

    stored: Iterable[StoredSegment] = ()


@value
class Connected:
    """A connection is open: the answer to Connect(peer), or accepted from `address` (peer is None)."""

    connection: int
    peer: str | None = None
    address: str = ""


@value
class ConnectFailed:
    """Connect(peer) failed. is_refused: the peer's host answers, but no process listens on the port."""

    peer: str
    reason: str
    is_refused: bool = False


@value
class Received:
    """Messages that arrived together, in order; none: a part of a long one arrived, so the peer is alive."""

    connection: int
    messages: Sequence[Any]


@value
class Malformed:
    """The peer sent bytes that are not a message. The connection is not read any more."""

    connection: int
    problem: str


@value
class Disconnected:
    """The connection was lost, not closed by this machine's Close."""

    connection: int
    reason: str


@value
class Writable:
    """The answer to AwaitWritable."""

    connection: int


@value
class TimerFired:
    """A timer of SetTimer has expired."""

    timer: Timer


@value
class Synced:
    """The first `appended` Append effects of this process are durable: they survive its host's crash."""

    appended: int


@value
class StorageFailed:
    """The disk is full and accepts nothing for now. Appended data is retained and tried again.

    The next Synced reports that it works again. Until then append as little as possible and acknowledge
    nothing. A broken disk ends the process instead.
    """

    problem: str


@value
class Nudge:
    """An application changed state through the machine's own methods: check for work."""


@value
class GiveUp:
    """The operator declares that a process of the run will not return, and accepts the loss of its data."""

    process: str


@value
class Go:
    """Drivers begin at `start_us`, which may be slightly in the past or future. late_us: how long after time
    0 of the run that is, for a process that is started later.
    """

    start_us: int
    late_us: int = 0


@value
class StopDrivers:
    """Drivers publish nothing new; operations in progress are finished."""


@value
class Finish:
    """Flush, close everything and end with Finished."""


Input = (
    Started
    | Connected
    | ConnectFailed
    | Received
    | Malformed
    | Disconnected
    | Writable
    | TimerFired
    | Synced
    | StorageFailed
    | Nudge
    | GiveUp
    | Go
    | StopDrivers
    | Finish
)

# --- Effects


@value
class Listen:
    """Accept connections on this port."""

    port: int


@value
class Connect:
    """Open a connection; answered by Connected or, at the latest after the timeout, ConnectFailed."""

    peer: str
    address: str
    port: int
    timeout_us: int


@value
class Send:
    """Write these messages, in order. size_bytes: of all their frames, if the machine has counted them."""

    connection: int
    messages: Sequence[Any]
    size_bytes: int | None = field(default=None, compare=False)


@value
class AwaitWritable:
    """Answer with Writable, once, when this connection can take more."""

    connection: int


@value
class PauseReading:
    """Stop reading from this connection for now, so that its peer has to wait."""

    connection: int


@value
class ResumeReading:
    """Read from this connection again."""

    connection: int


@value
class Close:
    """Close; no Disconnected follows. `abort` discards unsent data."""

    connection: int
    abort: bool = False


@value
class SetTimer:
    """Fire this timer at `at_us`, or at once if that is past."""

    timer: Timer
    at_us: int


@value
class CancelTimer:
    """Cancel this timer, if it is set."""

    timer: Timer


@value
class Record:
    """Write an entry to the record of deliveries, with the current time and the CRCs of its bytes.

    covered: the sequence numbers from first_seq on that it accounts for; more than `count` where events were
    collected. payload: the events' bytes, one after the other. mark: of `node.core.collection_marks`, for the
    file beside it.
    """

    kind: RecordKind
    stream: int
    first_seq: int
    count: int
    covered: int
    payload: bytes | memoryview = b""
    mark: bytes = b""


@value
class Measure:
    """Record numbers that the system measures itself, with the time: `Measure("queue", {"events": 12})`.

    They appear in summary.json below `measures.<name>.<value>`, for expectations and for the history.
    """

    name: str
    values: Mapping[str, float]


@value
class Append:
    """Write these messages to the log, in order. Answered by Synced; several may be synced at once.

    segment: where to; that of the last Append, or a greater number.
    """

    segment: int
    messages: Sequence[Any]


@value
class Rewrite:
    """Replace whole segments by these messages, atomically.

    segments: adjacent ones, in order, all before that of the last Append. They become one with the first
    one's number; without messages they are deleted. Executed after all earlier and before all later Appends.
    """

    segments: Sequence[int]
    messages: Sequence[Any]


@value
class Log:
    """One line in the node's log."""

    event: str
    fields: Mapping[str, Any] = field(default_factory=dict)
    level: str = "info"  # info, warning or error


@value
class Ready:
    """This node fulfils its role; reported once."""


@value
class Finished:
    """Nothing is left to do; the process may end."""


Effect = (
    Listen
    | Connect
    | Send
    | AwaitWritable
    | PauseReading
    | ResumeReading
    | Close
    | SetTimer
    | CancelTimer
    | Record
    | Measure
    | Append
    | Rewrite
    | Log
    | Ready
    | Finished
)


@value
class NodeProgress:
    """Progress of a node: the last sequence numbers acknowledged to it and delivered to it, by stream. If
    events go to subscribers by content, delivered is a count, because sequence numbers cannot show it.

    silent: it publishes nothing more, and everything it published is acknowledged.
    """

    published: Mapping[int, int] = field(default_factory=dict)
    delivered: Mapping[int, int] = field(default_factory=dict)
    silent: bool = True


class Machine(Protocol):
    """State machine that `node.tcp` and `node.sim` run."""

    frame_limit_bytes: int  # longer frames are neither sent nor accepted

    def handle(self, given: Input, now_us: int) -> Sequence[Effect]:
        """Process one input at time `now_us` and return the effects, in order."""

    def progress(self) -> NodeProgress:
        """Return the progress of this node."""

    def check(self) -> None:
        """Assert the invariants between two inputs, limits of memory included. Raises AssertionError that
        names the violation. It costs time and changes nothing; virtual time calls it now and then.
        """
