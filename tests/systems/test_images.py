"""A broker in an image on real packets: a link is cut, the broker is killed and restarted, a disk is full."""

import re
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from experiments.campaigns.campaign import RunState
from experiments.declared import programs_of
from experiments.loader import load_experiment, read_experiment
from node.core.program import Image
from systems.images.archives import ImageError
from systems.images.store import describe, ensure_unpacked, root_of
from testbed.campaign.backend_selection import open_backend
from testbed.campaign.sweeps.sweep_run import new_directory, new_sweep
from testbed.cli import main
from testbed.run_selection import RunSelection
from testbed.sandbox.requirements import has_other_users
from tests.systems.images.packed import configuration, digest, file, layer_of, saved
from tests.systems.on_packets import needs, output, run_on_packets
from tests.systems.test_documentation import written

WRITER = """\
  writer:
    traits: [coordinator]
    image: ./nats.tar
    run: [sh, -c, "while :; do n=$((n+1)); echo x >/file$n && echo room; sleep 0.1; done"]
    user: "0"
    limits: {storage: 1MB}
"""
FAULTS = """\
faults:
  - {name: cut, at: 1s, cut: [r0, r1], for: 1s}
  - {name: full, at: 2s, fill: r0/writer-0}
  - {name: room, at: 3s, restore: full}
  - {name: end, at: 4s, kill: r0/server-0}
  - {name: again, at: 4500ms, restart: r0/server-0}
"""


def make_system(folder: Path, *programs: str) -> str:
    """Write the page's system and its image, with programs of this machine; return the digest."""
    written(folder)
    with (folder / "inbox" / "system.yaml").open("a") as system:
        system.write(WRITER)
    experiment = folder / "inbox.yaml"
    changed = experiment.read_text().partition("faults:")[0].replace("100/s", "50/s") + FAULTS
    experiment.write_text(changed.replace("{server: 1,", "{server: 1, writer: 1,").replace("10s", "6s"))
    planned = [] if programs else [file("bin/nats-server", mode=0o755)]
    layer = layer_of(*programs, "sh", more=[file("etc/passwd", "nats:x:7:7::/:\n"), *planned])
    config = configuration([layer], Entrypoint=["nats-server"], Cmd=["-p", "4222"], User="nats")
    saved(folder / "inbox" / "nats.tar", {"nats:1": (config, [layer])})
    return digest(config)


@pytest.fixture(scope="module")
def made(tmp_path_factory, cache):
    folder = tmp_path_factory.mktemp("packed")
    packed = make_system(folder, "nats-server", "sleep")
    return packed, run_on_packets(folder, (folder / "inbox.yaml").read_text())


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("XDG_CACHE_HOME", str(folder := tmp_path_factory.mktemp("cache")))
        yield folder


class TestOnPackets:
    pytestmark = needs("nats", always=True)

    def test_events_pass_the_broker_before_and_after_the_cut(self, made):
        events = made[1].read_summary()["events"]
        assert events["published"] > 400
        assert events["delivered"] > 500
        assert events["stray"] == events["corrupted"] == 0

    def test_the_broker_was_killed_and_restarted(self, made):
        ends = [each.exit for each in made[1].read_run().processes if each.name == "r0/server-0"]
        assert next(end.signal for end in ends if end is not None) == 9
        assert sum("Server is ready" in text for text in output(made[1], "r0-server-0")) == 2

    def test_all_files_of_the_broker_are_on_the_full_disk(self, made):
        said = output(made[1], "r0-writer-0")
        full = [number for number, text in enumerate(said) if text != "room"]
        assert 0 < full[0] <= full[-1] < len(said) - 1

    def test_the_record_names_the_image_and_program(self, made):
        expected, run = made
        assert run.read_run().versions["nats.tar"] == expected


def test_plan_prints_program_and_digest(tmp_path, capsys, cache):
    expected = make_system(tmp_path)
    assert main.run(["plan", str(tmp_path / "inbox.yaml")]) == 0
    said = capsys.readouterr().out
    assert "r0/server-0: nats-server -p 4222\n" in said
    assert f"in the image {tmp_path}/inbox/nats.tar, {expected}\n" in said


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("./nats.tar\n    ready", "./no.tar\n    ready", "roles.server.image: "),
        ("./nats.tar\n    ready", "docker://nats:2\n    ready", "by skopeo, which is not installed: apt-get"),
        ("./nats.tar\n    ready", "./nats.tar:no\n    ready", "has no image named no; it has nats:1"),
        (
            "    ready",
            "    files: {/etc/../x: client.py}\n    ready",
            "files./etc/../x: should be a file name",
        ),
        ("    image: ./nats.tar\n    ready", "    ready", "roles.server.run: needs a program, or an image"),
        ("./nats.tar\n    ready", '"a\\0b"\n    ready', "image: "),
        ("./nats.tar\n    ready", f"./{300 * 'x'}\n    ready", "cannot be read: File name too long"),
        ("./nats.tar\n    ready", "./nats.tar\n    run: [nats]\n    ready", "nats.tar has no program nats"),
        ("./nats.tar\n    ready", "./nats.tar:nats:1\n    ready", ""),
    ],
)
def test_a_role_with_an_image_is_checked(tmp_path, capsys, monkeypatch, cache, old, new, problem):
    make_system(tmp_path)
    monkeypatch.setenv("PATH", "/nowhere")
    system = tmp_path / "inbox" / "system.yaml"
    system.write_text(system.read_text().replace(old, new))
    code = main.run(["plan", str(tmp_path / "inbox.yaml")])
    said = capsys.readouterr().err.splitlines()
    assert (code, len(said)) == ((2, 1) if problem else (0, 0))
    assert problem in "".join(said)
    assert all(re.search(r"inbox/system.yaml:\d+: roles.server.", line) for line in said)


@pytest.mark.parametrize("kept", [True, False])
def test_an_image_is_unpacked_once_and_leftovers_are_removed(tmp_path, monkeypatch, kept):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    layer = layer_of("sh")
    packed = saved(tmp_path / "a.tar", {"a:1": (configuration([layer]), [layer])})
    image = Image(str(packed), describe(str(packed)).digest)
    left = root_of(image, keeps_owners=False).parents[1] / ".partial-killed"
    left.mkdir(parents=True)
    ensure_unpacked(image, keeps_owners=False)
    root = root_of(image, keeps_owners=False)
    assert (root / "bin" / "sh").is_file()
    assert not left.exists()
    assert (tmp_path / "cache" / "cutset" / "images").stat().st_mode & 0o777 == 0o700
    saved(packed, {"a:1": (configuration([layer], Cmd=["other"]), [layer])})
    if kept:
        ensure_unpacked(image, keeps_owners=False)
        return
    shutil.rmtree(root.parent)
    with pytest.raises(ImageError, match="is not the planned image any more: it was sha256:"):
        ensure_unpacked(image, keeps_owners=False)
    assert [each.name for each in root.parents[1].iterdir()] == []


def test_an_experiment_replaces_a_program_by_an_image(tmp_path, capsys, monkeypatch, cache):
    """Do not install the program; use paths relative to the experiment."""
    layer = layer_of("nats-server")
    labels = {"org.opencontainers.image.version": "2.12.1"}
    config = configuration([layer], Entrypoint=["other"], User="1", Labels=labels)
    saved(tmp_path / "new.tar", {"nats:2": (config, [layer])})
    text = "name: n\ntopology: two-regions\nsystem: nats\nduration: 5s\nroles: {server: 1, publisher: 1}\n"
    text += "workload: {event_size: 50B, rate: 1/s}\nimages: {server: ./new.tar}\n"
    (tmp_path / "n.yaml").write_text(text)
    experiment = load_experiment(str(tmp_path / "n.yaml"))
    programs = programs_of(experiment.system, experiment.images)
    assert programs.roles["server"].image.digest == digest(config)
    assert programs.roles["server"].image.version == "2.12.1"
    assert programs.roles["server"].user == "1"
    assert [need.name for need in programs.needs] == ["nats"]
    for image, problem in {
        "{server: 'cutset:no'}": "n.yaml:7: images.server: cutset:no is not there yet: `make images`",
        "{brocker: ./new.tar}": "images.brocker: nats has no such role",
    }.items():
        (tmp_path / "n.yaml").write_text(text.replace("{server: ./new.tar}", image))
        assert main.run(["plan", str(tmp_path / "n.yaml")]) == 2
        assert problem in capsys.readouterr().err
    swept = text.replace("images: {server: ./new.tar}", "sweep: {images.server: [./new.tar, ./no.tar]}")
    (tmp_path / "n.yaml").write_text(swept)
    assert main.run(["plan", str(tmp_path / "n.yaml")]) == 2
    assert "n.yaml:7: sweep.images.server: " in capsys.readouterr().err


def test_a_resumed_sweep_reports_a_changed_image(tmp_path, monkeypatch, cache):
    layer = layer_of("nats-server")
    saved(tmp_path / "new.tar", {"nats:2": (configuration([layer]), [layer])})
    text = "name: n\ntopology: two-regions\nsystem: nats\nduration: 5s\nroles: {server: 1, publisher: 1}\n"
    text += "workload: {event_size: 50B, rate: 1/s}\nimages: {server: ./new.tar}\n"
    (tmp_path / "n.yaml").write_text(text)
    chosen = RunSelection(read_experiment(str(tmp_path / "n.yaml")), "local", "auto", 1, 2)
    sweep = new_sweep(new_directory(tmp_path / "runs", "n"), chosen)
    with open_backend("local", print) as backend:
        run = sweep.make_run(sweep.record.pending[0], backend)
    sweep.note(replace(run, state=RunState.DONE))
    assert list(sweep.changed_images()) == []
    saved(tmp_path / "new.tar", {"nats:2": (configuration([layer], Cmd=["other"]), [layer])})
    [line] = sweep.changed_images()
    assert line.startswith(
        f"note: {tmp_path}/new.tar is another image than in the runs that were made: sha256:"
    )


def test_a_user_whom_the_image_lacks_is_refused_in_the_plan(tmp_path, capsys, cache):
    layer = layer_of("nats-server")
    saved(tmp_path / "new.tar", {"nats:2": (configuration([layer], User="no-such"), [layer])})
    text = "name: n\ntopology: two-regions\nsystem: nats\nduration: 5s\nroles: {server: 1, publisher: 1}\n"
    text += "workload: {event_size: 50B, rate: 1/s}\nimages: {server: ./new.tar}\n"
    (tmp_path / "n.yaml").write_text(text)
    code, said = main.run(["plan", str(tmp_path / "n.yaml")]), capsys.readouterr().err
    refused = "images.server: the image has no user no-such" in said
    assert (code, refused) == ((2, True) if has_other_users() else (0, False))
