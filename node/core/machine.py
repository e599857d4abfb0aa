"""The sans-I/O interface: what a protocol's state machine takes in, and what it asks for.

A machine is given inputs with the current time and returns effects, in the order in which they are to be
carried out. It owns no clock, no socket, no process and no randomness of its own (a generator is injected).
`node.tcp` carries the effects out over TCP and real time, `node.sim` in virtual time; the same inputs give
the same effects.

Connections are FIFO, reliable and named by numbers that the surroundings choose. Messages are the
protocol's message objects: bytes are made and read by its codec, outside of the machine. Times are
microseconds of a clock that never goes back.

Flow control: a machine may hand a bounded burst to a connection at any time. With `AwaitWritable` it asks
to be told (`Writable`, once) when that connection has taken nearly everything; until then it must not hand
it bulk data.

Storage: what must survive the process goes to its log with `Append`, messages like those on the wire. A log
is a row of segments that the machine numbers: it writes to the last one, begins the next one by naming a
greater number, and may replace earlier ones with what is still of use in them (`Rewrite`). `Synced` says how
many of its `Append` are on disk for good, `StorageFailed` that they are not for now; at the next start
`Started.stored` gives everything back in order. A process without storage keeps nothing, and every `Append`
counts as synced at once: whoever relies on it demands storage when it is made.
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
        """A number, uniform in [0, 1)."""

    def uniform(self, a: float, b: float) -> float:
        """A number, uniform between a and b."""

    def randrange(self, start: int, /) -> int:
        """An integer, uniform among 0 to start - 1."""


# --- Inputs


@value
class StoredSegment:
    """A segment of the log as an earlier process left it. What is not wholly on disk is not in it."""

    number: int
    messages: Sequence[Any]


@value
class Started:
    """The process runs. The first input, once.

    stored: the segments of its log, in order; read from disk while they are taken, so take them once and now.
    Taking them raises StorageError (`node.core.errors`) where the log is damaged. New segments get greater
    numbers than these.
    """

    stored: Iterable[StoredSegment] = ()


@value
class Connected:
    """A connection is open: the answer to Connect(peer), or accepted (peer is None) from `address`."""

    connection: int
    peer: str | None = None
    address: str = ""


@value
class ConnectFailed:
    """Connect(peer) came to nothing. is_refused: the peer's host answers, and nobody listens there."""

    peer: str
    reason: str
    is_refused: bool = False


@value
class Received:
    """Messages that came in together, in order; none: a part of a long one has come, so the peer is alive."""

    connection: int
    messages: Sequence[Any]


@value
class Malformed:
    """The peer sent bytes that are no message. Nothing more will be read from this connection."""

    connection: int
    problem: str


@value
class Disconnected:
    """The connection is gone, not by our own Close."""

    connection: int
    reason: str


@value
class Writable:
    """The answer to AwaitWritable."""

    connection: int


@value
class TimerFired:
    """The time of SetTimer has come."""

    timer: Timer


@value
class Synced:
    """The first `appended` of all Append of this process are durable: they survive its host's crash."""

    appended: int


@value
class StorageFailed:
    """The disk takes nothing for now: it is full. What was to be appended is kept and tried again.

    The next Synced says that it works again. Until then hand it as little as possible, and promise nothing. A
    disk that is broken rather than full ends the process instead.
    """

    problem: str


@value
class Nudge:
    """An application has changed something through the machine's own methods: look again."""


@value
class GiveUp:
    """The operator says that a process of the run will not come back, and takes what is lost with it."""

    process: str


@value
class Go:
    """Drivers begin at `start_us`, which may be a little ahead or behind. late_us: how long after time 0 of
    the run that is, for a process that is started later.
    """

    start_us: int
    late_us: int = 0


@value
class StopDrivers:
    """Drivers publish nothing new; what is under way is finished."""


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
    """Take nothing more from this connection for now, so that its peer has to wait."""

    connection: int


@value
class ResumeReading:
    """Take what comes from this connection again."""

    connection: int


@value
class Close:
    """Close; no Disconnected follows. `abort` throws away what is not yet sent."""

    connection: int
    abort: bool = False


@value
class SetTimer:
    """Fire this timer at `at_us`, or at once if that is past."""

    timer: Timer
    at_us: int


@value
class CancelTimer:
    """Forget this timer, if it is set."""

    timer: Timer


@value
class Record:
    """Put this into the record of deliveries, with the time at which it is written and the CRCs of its bytes.

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
    """Put down numbers that the system measures itself, with the time: `Measure("queue", {"events": 12})`.

    They stand in summary.json below `measures.<name>.<value>`, for expectations and for the history.
    """

    name: str
    values: Mapping[str, float]


@value
class Append:
    """Write these messages to the log, in order. Answered by Synced; several may be synced at once.

    segment: where to; the same as that of the last Append, or a greater number.
    """

    segment: int
    messages: Sequence[Any]


@value
class Rewrite:
    """Put these messages in the place of whole segments, all at once or not at all.

    segments: adjacent ones, in order, all before that of the last Append. They become one with the first
    one's number; without messages they are gone. Done after every Append before it, before every later one.
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
    """This node does what its role demands; said once."""


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
class Progress:
    """How far a node got, by stream: the last sequence number acknowledged to it, and delivered to it. Where
    events are for whom their content interests, no number says how many came: delivered is the count.

    silent: it publishes nothing more, and all that it published is acknowledged.
    """

    published: Mapping[int, int] = field(default_factory=dict)
    delivered: Mapping[int, int] = field(default_factory=dict)
    silent: bool = True


class Machine(Protocol):
    """What `node.tcp` and `node.sim` run."""

    frame_limit_bytes: int  # a longer frame is neither sent nor taken

    def handle(self, given: Input, now_us: int) -> Sequence[Effect]:
        """Take one input at time `now_us`; returns what is to be done, in order."""

    def progress(self) -> Progress:
        """How far this node got."""

    def check(self) -> None:
        """Assert what must hold between any two inputs, limits of memory among it: AssertionError says what
        does not. It costs time and changes nothing; virtual time asks for it now and then.
        """
