"""When a run has drained."""

from testbed.processes import NodeProcess
from testbed.runner.draining import everything_delivered, highest, lowest, reached

DRIVERS = [
    NodeProcess("r0/driver-0", "r0-driver-0", published={0: 100}),
    NodeProcess("r0/driver-1", "r0-driver-1", published={0: 120}),
    NodeProcess("r1/driver-0", "r1-driver-0", published={1: 50}),
]


def client(**delivered: int) -> NodeProcess:
    return NodeProcess(
        "r0/client-0", "r0-client-0", delivered={int(key[1:]): seq for key, seq in delivered.items()}
    )


def test_drained_when_each_client_has_each_stream_to_its_end() -> None:
    assert everything_delivered(DRIVERS, [client(s0=120, s1=50), client(s0=120, s1=50)])


def test_not_while_one_client_lacks_the_end_of_one_stream() -> None:
    assert not everything_delivered(DRIVERS, [client(s0=120, s1=50), client(s0=119, s1=50)])
    assert not everything_delivered(DRIVERS, [client(s0=120)])


def test_a_client_may_have_what_was_not_acknowledged_in_time() -> None:
    assert everything_delivered(DRIVERS, [client(s0=121, s1=50)])


def test_nothing_published_and_nobody_listening_is_drained() -> None:
    assert everything_delivered([], [client()])
    assert everything_delivered(DRIVERS, [])


def test_it_is_the_same_to_hear_of_the_slowest_client_alone() -> None:
    published = highest(driver.published for driver in DRIVERS)
    for counts in (
        [{0: 120, 1: 50}, {0: 120, 1: 51}],
        [{0: 120, 1: 50}, {0: 119, 1: 50}],
        [{0: 120}, {1: 50}],
    ):
        assert reached(published, [lowest(counts)]) == reached(published, counts)
