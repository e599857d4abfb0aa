"""Durable replicas as real processes with real files: killed at any time, with full disks and damaged
logs.
"""

import os
from dataclasses import replace
from pathlib import Path

from node.core.deliveries import RecordKind
from node.protocols.sprinkler.messages import CODEC, Events
from node.tcp.log_database import FILE, LogDatabase
from tests.node.tcp.launched import batches, launcher, log_lines, logged, loopback_specs

DURABLE = {"durable": True, "segment_limit_bytes": 30_000}


def durable_specs(folder, **given):
    specs = loopback_specs(folder, parameters=DURABLE, rate_per_s=5000, **given)
    return [replace(spec, storage=str(folder / "storage" / spec.host)) for spec in specs]


def test_a_replica_killed_repeatedly_recovers_from_its_files(tmp_path):
    specs = durable_specs(tmp_path, regions=1)
    proxy, driver, client = specs
    with launcher() as launched:
        launched.start_all(specs)
        for turn in range(1, 4):
            launched.wait_published(1500 * turn)
            launched.kill(proxy)
            launched.start(proxy)
            launched.wait(lambda turn=turn: len(launched.all_said("started", name=proxy.name)) > turn)
        launched.kill(client)
        del launched.delivered[client.name]
        launched.start(client)
        launched.drain(clients=1)
        launched.finish(4 + len(specs))
    published = batches(driver, RecordKind.PUBLISHED)
    delivered = batches(client, RecordKind.DELIVERED)
    assert sum(count for _, _, count, _ in published) >= 4500
    assert delivered[-len(published) :] == published  # the new client got everything from the beginning
    assert stored_events(proxy) == published[-1][1] + published[-1][2] - 1
    assert not [line for line in log_lines(proxy) if line["event"] in {"events_lost", "storage_damaged"}]


def stored_events(spec):
    """Return the number of events in its log, which must have no gaps."""
    cnt = 0
    for message in stored(spec):
        if isinstance(message, Events):
            assert message.first_seq == cnt + 1
            cnt += message.count
    return cnt


def stored(spec):
    """Return the messages in a process's log."""
    database = LogDatabase(Path(spec.storage), CODEC)
    messages = [message for segment in database.read() for message in segment.messages]
    database.close()
    return messages


def test_a_damaged_log_prevents_the_start_and_names_the_remedy(tmp_path, capfd):
    specs = durable_specs(tmp_path, regions=1)
    proxy, *_ = specs
    with launcher() as launched:
        launched.start_all(specs)
        launched.wait_published(5000)
        launched.kill(proxy)
        assert stored(proxy)
        path = Path(proxy.storage) / FILE
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        launched.start(proxy)
        *_, ended = launched.wait(lambda: len(found := launched.all_said("exited")) > 1 and found)
        assert ended["code"] not in (0, None)
    [damaged] = logged(proxy, "storage_damaged")
    assert str(path) in damaged["problem"]
    assert "Restore the file from a copy" in damaged["problem"]
    assert [path.name for path in (tmp_path / "storage").iterdir()] == [proxy.host], "others keep nothing"
    capfd.readouterr()


def with_tiny_disk(folder):
    """Return a command that starts another with a 4 MB file system at `folder`, nearly full of ballast."""
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    script = 'mount -t tmpfs -o size=4m tmpfs $0 && head -c 4000000 /dev/zero >$0/ballast && exec "$@"'
    return ["unshare", "--mount", "--propagation", "private", *user, "sh", "-c", script, str(folder)]


def test_a_full_disk_refuses_publishers_until_there_is_room(tmp_path):
    specs = durable_specs(tmp_path, regions=1)
    proxy, driver, client = specs
    (tmp_path / "storage").mkdir()
    with launcher(with_tiny_disk(tmp_path / "storage")) as launched:
        launched.start_all(specs)
        (full,) = launched.wait(lambda: logged(proxy, "storage_full"))
        assert "disk is full" in full["problem"]
        launched.wait(lambda: logged(proxy, "refused_peer"))
        Path(f"/proc/{launched.process.pid}/root{tmp_path}/storage/ballast").unlink()
        launched.wait_published(launched.published["r0/driver-0"]["0"] + 2000)
        launched.drain(clients=1)
        launched.finish(len(specs))
    lines = [line["event"] for line in log_lines(proxy) if line["event"].startswith("storage_")]
    assert lines == ["storage_full", "storage_recovered"]
    assert {line["code"] for line in logged(proxy, "refused_peer")} == {"history_full"}
    assert batches(client, RecordKind.DELIVERED) == batches(driver, RecordKind.PUBLISHED)


def test_a_configuration_service_recovers_from_its_files_and_keeps_them_small(tmp_path):
    specs = durable_specs(tmp_path, regions=1, proxies=2, configuration=True)
    service = next(spec for spec in specs if spec.role == "configuration")
    with launcher() as launched:
        launched.start_all(specs)
        for turn in range(1, 4):
            launched.kill(service)
            launched.start(service)
            launched.wait(lambda turn=turn: len(launched.all_said("ready", name=service.name)) > turn)
        launched.wait_published(1000)
        launched.drain(clients=1)
        launched.finish(3 + len(specs))
    assert [message.number for message in stored(service)] == [1]  # nothing had to change
    assert [line["number"] for line in logged(service, "configuration_changed")] == [1]
