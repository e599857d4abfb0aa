"""Real processes over loopback TCP, through the launcher: a small run, deaths, restarts, bad input."""

import os
import select
import signal
import time
from dataclasses import replace

from node.core.deliveries import RecordKind
from node.core.epochs import NUMBER_BITS
from tests.node.tcp.launched import WAIT_S, batches, launcher, log_lines, loopback_specs, records


def test_a_run_delivers_every_batch_once_and_in_order_and_ends_in_order(tmp_path):
    specs = loopback_specs(tmp_path, regions=3, clients=2)
    with launcher() as launched:
        launched.start_all(specs)
        launched.wait_delivered("r0/client-0", 2, 1000)
        launched.drain(clients=6)
        ended = launched.finish(len(specs))
    assert {(end["code"], end["signal"]) for end in ended} == {(0, None)}
    for driver in (each for each in specs if each.role == "driver"):
        published = batches(driver, RecordKind.PUBLISHED)
        stream = driver.owned_by(driver.region)[0]
        assert sum(count for _, _, count, _ in published) >= 1000 or stream != 2
        for client in (each for each in specs if each.role == "client"):
            assert batches(client, RecordKind.DELIVERED, stream) == published
    switched = [line for line in log_lines(specs[0]) if line["event"] == "source_switched"]
    last = {
        line["stream"]: (line["to"], line["why"]) for line in switched
    }  # the first node that was up is the earlier source
    assert last == {1: ("r1/proxy-0", "direct"), 2: ("r2/proxy-0", "direct")}


def test_killed_processes_are_reported_and_continue_after_a_restart(tmp_path):
    """Check that a client continues its record and a proxy recovers its stream."""
    specs = loopback_specs(tmp_path, regions=2)
    client, proxy = (
        next(spec for spec in specs if spec.name == f"r1/{role}-0") for role in ("client", "proxy")
    )
    with launcher() as launched:
        launched.start_all(specs)
        launched.wait_delivered(client.name, 0, 500)
        ended = launched.kill(client)
        assert (ended["name"], ended["code"], ended["signal"]) == (client.name, None, signal.SIGKILL)
        del launched.delivered[client.name]
        launched.kill(proxy)
        launched.start(client)
        launched.start(proxy)
        # It had nothing on disk: its stream goes on in another epoch, which is known before its first event.
        launched.wait_delivered("r0/client-0", 1, (1 << NUMBER_BITS) + 500)
        launched.drain(clients=2)
        launched.finish(2 + len(specs))
    driver = next(spec for spec in specs if spec.name == "r0/driver-0")
    published = batches(driver, RecordKind.PUBLISHED)
    assert len(records(client, RecordKind.SESSION)) == 2
    assert batches(client, RecordKind.DELIVERED, 0)[-len(published) :] == published
    assert [line["stream"] for line in log_lines(proxy) if line["event"] == "stream_taken"] == [1, 1]


def test_only_a_restarted_driver_gets_a_second_go(tmp_path):
    specs = loopback_specs(tmp_path, regions=2)
    driver = next(spec for spec in specs if spec.name == "r1/driver-0")
    with launcher() as launched:
        for spec in specs:
            launched.start(spec)
        launched.wait_ready(len(specs))
        launched.tell("go", start_ns=time.time_ns(), late_us=0, name=driver.name)
        launched.wait_delivered("r0/client-0", 1, 200)
        assert launched.published.get("r0/driver-0", {}).get("0", 0) == 0
        launched.finish(len(specs))


def test_a_driver_is_silent_only_when_all_publications_are_acknowledged(tmp_path):
    specs = loopback_specs(tmp_path, regions=1)
    proxy, driver, client = specs
    with launcher() as launched:
        launched.start_all(specs)
        launched.wait_delivered(client.name, 0, 200)
        launched.signal(proxy, signal.SIGSTOP)
        wait_for_reports(launched, driver, lambda one, other: one["published"] == other["published"])
        launched.tell("stop_drivers")
        wait_for_reports(launched, driver, lambda one, other: not (one["silent"] or other["silent"]))
        launched.signal(proxy, signal.SIGCONT)
        launched.drain(clients=1)
        launched.finish(len(specs))
    assert batches(client, RecordKind.DELIVERED) == batches(driver, RecordKind.PUBLISHED)


def wait_for_reports(launched, spec, condition):
    """Wait until two successive progress reports from now on meet the condition."""
    seen = len(launched.said)

    def come():
        mine = [m for m in launched.said[seen:] if m["did"] == "progress" and m["name"] == spec.name]
        return len(mine) > 3 and condition(*mine[-2:])

    launched.wait(come)


def test_a_node_that_cannot_run_reports_why_and_the_others_continue(tmp_path, capfd):
    specs = loopback_specs(tmp_path, regions=1)
    broken = replace(specs[2], name="r0/client-9", netns="/nowhere/ns/net")
    with launcher() as launched:
        launched.start(broken)
        (ended,) = launched.wait(lambda: launched.all_said("exited"))
        assert ended["code"] not in (0, None)
        launched.start_all(specs)
        pids = [message["pid"] for message in launched.all_said("started") if message["name"] != broken.name]
        handles = [os.pidfd_open(pid) for pid in pids]
        assert len(handles) == len(specs)
        launched.process.kill()
        for handle in handles:
            wait_for_end(handle)
    assert "/nowhere/ns/net" in capfd.readouterr().err


def wait_for_end(handle):
    poller = select.poll()
    poller.register(handle, select.POLLIN)
    assert poller.poll(1000 * WAIT_S), "a node outlived its launcher"
    os.close(handle)
