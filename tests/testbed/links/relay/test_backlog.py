"""The order in which waiting frames are admitted, and the bytes that they count. Sends no packets."""

from random import Random

from testbed.links.relay import link_direction as link_direction_module
from testbed.links.relay.ingress import Ingress, IngressBacklog
from testbed.links.relay.link_direction import DelayQueue, LinkDirection
from testbed.links.relay.ring import Frame
from tests.testbed.links.relay.vnet_frames import small
from topologies.link_parameters import LinkParameters

MANY = 5000  # frames, many portions
SIZE = len(small())
ALL_BYTES = 1 << 30


class Arrivals:
    """A port at which some frames have arrived."""

    def __init__(self, count: int) -> None:
        self.left: list[Frame] = []
        self._frames: list[Frame] = [(0, small())] * count

    @property
    def is_empty(self) -> bool:
        return not self._frames

    def receive(self, ahead_ns: int) -> list[Frame]:
        frames, self._frames = self._frames, []
        return frames


def make_ingress(name: str, delay_queue: DelayQueue, arrived: int = 0) -> Ingress:
    return Ingress(
        name,
        "forward",
        Arrivals(arrived),
        LinkDirection(0, LinkParameters(), Random(1), delay_queue),
        delay_queue,
    )


def test_a_burst_on_one_link_delays_the_others_by_one_portion():
    delay_queue, backlog = DelayQueue(), IngressBacklog()
    burst, few, more = (
        make_ingress(name, delay_queue, count) for name, count in [("a", MANY), ("b", 10), ("c", MANY)]
    )
    for ingress in (burst, few, more):
        ingress.take(0)
        backlog.add(ingress)
    backlog.admit_portion()
    assert (few.link_direction.frames, more.link_direction.frames) == (0, 0)
    backlog.admit_portion()
    assert few.link_direction.frames == 10  # and the rest of the portion is for the next
    assert 0 < more.link_direction.frames < burst.link_direction.frames < MANY / 10
    while backlog:
        backlog.admit_portion()
    assert (burst.link_direction.frames, more.link_direction.frames) == (MANY, MANY)


def test_further_frames_of_a_waiting_link_do_not_change_the_order():
    delay_queue, backlog = DelayQueue(), IngressBacklog()
    ingresses = [make_ingress(name, delay_queue, MANY) for name in "abc"]
    for ingress in ingresses:
        ingress.take(0)
        backlog.add(ingress)
    for _ in range(9):
        backlog.admit_portion()
        backlog.add(ingresses[0])
    assert len({ingress.link_direction.frames for ingress in ingresses}) == 1


def test_frames_waiting_for_admission_count_as_held_once():
    delay_queue = DelayQueue()
    ingress = make_ingress("a", delay_queue, arrived=3)
    for _ in range(2):
        ingress.hand_over(0, small())
    assert delay_queue.queued_bytes == 2 * SIZE
    ingress.take(0)
    assert delay_queue.queued_bytes == 5 * SIZE
    ingress.admit(1)
    assert (len(delay_queue.heap), delay_queue.queued_bytes) == (1, 5 * SIZE)
    ingress.admit(ALL_BYTES)
    assert (len(delay_queue.heap), delay_queue.queued_bytes) == (5, 5 * SIZE)


def test_frames_beyond_the_byte_limit_are_not_handed_over(monkeypatch):
    monkeypatch.setattr(link_direction_module, "QUEUED_BYTES_MAX", 20 * SIZE)
    delay_queue = DelayQueue()
    sender, receiver = make_ingress("a", delay_queue), make_ingress("b", delay_queue)
    for _ in range(100):  # while the relay has no turn for the receiver
        for _ in range(5):
            sender.link_direction.admit(small(), 0)
        while delay_queue.heap:
            release_ns, _, _, frame = delay_queue.heap.pop()
            delay_queue.queued_bytes -= len(frame)
            receiver.hand_over(release_ns, frame)
    assert len(receiver.handed_over) == 21
    assert sender.link_direction.dropped_queue == 500 - 21
    assert delay_queue.queued_bytes == 21 * SIZE
