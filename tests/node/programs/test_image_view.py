"""Programs in images see the image's files and their own, run as its user, and keep their changes."""

import io
import os
import shutil
import signal
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from node.core.program import Image, Readiness
from node.programs.image_view import NoSuchUserError, user_of
from tests.node.programs.minded import AT_ONCE, WITHIN, program, shell, spec
from tests.node.programs.test_minder import output, until
from tests.node.tcp.launched import launcher
from tests.systems.images.packed import file, layer_of

IMAGE = Image("made", "sha256:made", folder="/srv/new")
PASSWD = "root:x:0:0::/root:/bin/sh\nwriter:x:7:8::/home/writer:/bin/sh\n"
GROUP = "root:x:0:\nreaders:x:9:writer\nothers:x:10:root,writer\n"
AS_ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def image_root(tmp_path_factory):
    """Return the files of an image: this machine's shell and the programs that it starts."""
    folder = tmp_path_factory.mktemp("image") / "root"
    files = [file("etc/passwd", PASSWD), file("etc/group", GROUP), file("only/here", "the image's\n")]
    with tarfile.open(fileobj=io.BytesIO(layer_of("sh", "cat", "id", "ls", "sleep", more=files))) as tar:
        tar.extractall(folder, filter="tar")
    return folder


@pytest.fixture
def launched():
    with launcher(WITHIN) as there:
        yield there


def in_image(folder, image_root, script, name="r0/broker-0", **given):
    minded = shell(script, image=IMAGE, stop=AT_ONCE, **given)
    return spec(folder, minded, name, image_root=str(image_root))


@pytest.mark.network
def test_a_program_and_its_ready_command_see_the_image_and_the_programs_files(tmp_path, launched, image_root):
    script = (
        "pwd; cat /proc/sys/kernel/hostname /only/here /etc/its/own.conf; ls -m /dev; echo $HOME $PATH $WHO"
    )
    given = {"files": {"/etc/its/own.conf": "port 12\n", "b": ""}, "env": {"WHO": "me"}}
    more = f"test -e {tmp_path}/programs/r0-broker-0/b && ! test -e {__file__} && echo $USER$LANG end"
    ready = Readiness(
        command=("sh", "-c", "cat /only/here && test -e /etc/its/own.conf"), within_us=60_000_000
    )
    one = in_image(tmp_path, image_root, f"{script}; {more}; exec sleep 60", ready=ready, **given)
    launched.start(one)
    launched.wait_ready(1)
    assert until(lambda: "end" in output(one) and output(one)) == [
        "/srv/new",
        "r0-broker-0",
        "the image's",
        "port 12",
        "fd, full, null, random, shm, stderr, stdin, stdout, tty, urandom, zero",
        "/root /usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin me",
        "end",
    ]
    assert not (image_root / "srv").exists()


@pytest.mark.network
@pytest.mark.parametrize(("keeps", "there"), [(True, "mine"), (False, "nothing")])
def test_written_files_survive_a_restart_if_storage_is_kept(tmp_path, launched, image_root, keeps, there):
    script = "cat /it || echo nothing; ls /only; echo mine >/it; echo over >/only/here; exec sleep 600"
    one = in_image(tmp_path, image_root, script, keeps_storage=keeps)
    launched.start(one)
    said = launched.wait(lambda: launched.all_said("started"))[0]
    until(lambda: "nothing" in output(one) and (Path(one.storage) / "upper" / "only" / "here").exists())
    os.killpg(said["pid"], signal.SIGKILL)
    launched.wait(lambda: launched.all_said("exited"))
    before = len(output(one))
    launched.start(replace(one, start=1))
    until(lambda: there in output(one)[before:])
    assert (image_root / "only" / "here").read_text() == "the image's\n"


@pytest.mark.network
def test_a_program_runs_as_the_images_user_if_that_is_possible(tmp_path, launched, image_root):
    script = "id -u; id -G; echo $HOME; echo named >/dev/stdout; exec sleep 60"
    one = in_image(tmp_path, image_root, script, user="writer")
    launched.start(one)
    found = until(lambda: len(output(one)) >= 4 and output(one))
    assert found == [*(["7", "8 9 10"] if AS_ROOT else [str(os.getuid()), found[1]]), "/home/writer", "named"]


@pytest.mark.network
@pytest.mark.parametrize(
    ("run", "user", "problem"),
    [
        ("no-such-program", "", "cannot start no-such-program: [Errno 2] No such file or directory"),
        ("sh", "stranger", "cannot start sh: the image has no user stranger"),
    ],
)
def test_a_program_that_cannot_start_in_its_image_reports_the_reason(
    tmp_path, launched, image_root, run, user, problem
):
    launched.start(spec(tmp_path, program(run, image=IMAGE, user=user), image_root=str(image_root)))
    launched.wait(lambda: launched.all_said("exited"))
    [failed] = launched.all_said("failed")
    assert failed["problem"].startswith(problem)


@pytest.mark.network
def test_a_copy_replaces_a_missing_overlayfs(tmp_path, image_root):
    """Mount nothing over such a file system, as in a container whose root is an overlay."""
    for name in ("lower", "upper", "work", "run"):
        (tmp_path / name).mkdir()
    options = f"lowerdir={tmp_path}/lower,upperdir={tmp_path}/upper,workdir={tmp_path}/work"
    options += "" if AS_ROOT else ",userxattr"
    first = ["sh", "-c", f'mount -t overlay -o {options} none {tmp_path}/run && exec "$@"', "sh"]
    one = in_image(tmp_path / "run", image_root, "cat /only/here; echo mine >/only/here; exec sleep 60")
    seen = tmp_path / "upper" / Path(one.log).name
    with launcher([*WITHIN, *first]) as there:
        for start, text in enumerate(("the image's", "mine")):
            there.start(replace(one, start=start))
            until(lambda text=text: seen.exists() and text in seen.read_text())
            there.finish(start + 1)
    shutil.rmtree(tmp_path / "work", ignore_errors=True)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", (0, 0, (0, 10), "/root")),
        ("writer", (7, 8, (8, 9, 10), "/home/writer")),
        ("7", (7, 8, (8, 9, 10), "/home/writer")),
        ("writer:others", (7, 10, (10,), "/home/writer")),
        ("99:5", (99, 5, (5,), "/")),
        ("nobody", None),
        ("groupless", None),
        ("7:nogroup", None),
        ("4294967294", (2**32 - 2, 0, (0,), "/")),
        ("4294967295", None),
        ("7:99999999999", None),
        ("large", None),
        ("\u0663", None),
    ],
)
def test_a_user_is_looked_up_in_the_image(tmp_path, given, expected):
    (tmp_path / "passwd").write_text(
        PASSWD + "broken\n" + "groupless:x:3::::\nlarge:x:" + 5000 * "9" + ":1:::\n"
    )
    (tmp_path / "group").write_text(GROUP)
    if expected is None:
        with pytest.raises(NoSuchUserError, match="the image has no"):
            user_of(given, tmp_path / "passwd", tmp_path / "group")
        return
    found = user_of(given, tmp_path / "passwd", tmp_path / "group")
    assert (found.uid, found.gid, found.groups, found.home) == expected
