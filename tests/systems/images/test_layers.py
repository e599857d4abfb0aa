"""Layers of images: a layer hides files below it, and no entry leads out of the image."""

import gzip
import os
import platform
import shutil
import stat
import tarfile
from tarfile import BLKTYPE, DIRTYPE, FIFOTYPE, LNKTYPE, SYMTYPE
from types import SimpleNamespace

import pytest

from node.programs.image_view import NoSuchUserError, user_of
from systems.images.archives import ImageError, described, opened
from systems.images.layers import debian_version, no_place, unpack, why_not_run
from tests.systems.images.packed import configuration, digest, file, oci, other, tar_of


@pytest.fixture
def unpacked(tmp_path):
    """Unpack an image of these layers, each a list of entries."""

    def made(*layers):
        packed = [tar_of(each) for each in layers]
        layout = oci(tmp_path / "layout", {"it": (configuration(packed), packed)})
        root = tmp_path / "made" / "root"
        root.mkdir(parents=True)
        with opened(layout) as files:
            unpack(files, described(files), root, keeps_owners=False)
        return root

    return made


def content(root):
    return {
        str(path.relative_to(root)): path.read_text()
        for path in sorted(root.rglob("*"))
        if path.is_file() and not path.is_symlink()
    }


def test_a_layer_replaces_and_hides_files_of_lower_ones(unpacked):
    root = unpacked(
        [file("./a", "1"), file("b", "1"), file("d/x", "1"), file("d/y", "1"), file("e/x", "1")],
        [
            file("a", "2"),
            file(".wh.b"),
            file("d/new", "2"),
            file("d/.wh..wh..opq"),
            file("e/.wh.x"),
            file("e/x", "2"),
        ],
    )
    assert content(root) == {"a": "2", "d/new": "2", "e/x": "2"}


def test_entries_replace_entries_of_other_kinds(unpacked):
    root = unpacked(
        [file("a/x", "1"), other("b", SYMTYPE, "a"), file("c", "1")],
        [file("a", "2"), other("b", DIRTYPE), other("c", SYMTYPE, "a")],
    )
    assert content(root) == {"a": "2"}
    assert (root / "c").is_symlink()
    assert not (root / "b").is_symlink()


def test_folders_that_are_links_are_followed_within_the_image(unpacked, tmp_path):
    (tmp_path / "outside").mkdir()
    root = unpacked(
        [other("lib", SYMTYPE, "usr/lib"), other("abs", SYMTYPE, str(tmp_path / "outside"))],
        [other("up", SYMTYPE, "../../../outside"), file("lib/x", "1"), file("abs/y", "1"), file("up/z", "1")],
    )
    inside = str(tmp_path / "outside").lstrip("/")
    assert content(root) == {"usr/lib/x": "1", f"{inside}/y": "1", "outside/z": "1"}
    assert list((tmp_path / "outside").iterdir()) == []


def test_hard_links_stay_within_the_image(unpacked):
    root = unpacked([file("a", "1"), other("b", LNKTYPE, "/a")])
    assert (root / "b").stat().st_ino == (root / "a").stat().st_ino


@pytest.mark.parametrize(
    "entries",
    [
        [file("../x", "1")],
        [file("a/../../x", "1")],
        [other("x", LNKTYPE, "../../../etc/passwd")],
        [other("x", LNKTYPE, "/etc/passwd")],
        [other("a", SYMTYPE, "b"), other("b", SYMTYPE, "a"), file("a/x", "1")],
        [file(".", "1")],
    ],
)
def test_entries_that_lead_out_of_the_image_are_refused(unpacked, tmp_path, entries):
    with pytest.raises(ImageError, match="cannot be unpacked"):
        unpacked(entries)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["layout", "made"]


def test_a_whiteout_hides_no_file_outside_the_image(unpacked, tmp_path):
    (tmp_path / "victim").write_text("1")
    unpacked([other("up", SYMTYPE, "/../.."), file("up/.wh.victim"), file(".wh..."), file("up/.wh..wh..opq")])
    assert (tmp_path / "victim").exists()


def test_an_error_names_the_entry_and_no_place_in_the_store(unpacked, tmp_path):
    with pytest.raises(ImageError, match=r"cannot be unpacked: a/x+: File name too long$"):
        unpacked([file("a/" + 300 * "x", "1")])


def test_a_program_is_found_as_the_image_would_find_it(unpacked):
    links = [other("bin", SYMTYPE, "usr/bin"), other("usr/bin/sh", SYMTYPE, "/opt/dash")]
    root = unpacked(
        [*links, file("opt/dash", "1", 0o755), file("usr/bin/text", "1"), file("srv/run", "1", 0o755)]
    )
    found = {
        name: why_not_run(root, name, "/srv", "/sbin:/bin") is None
        for name in ("sh", "/bin/sh", "./run", "opt/dash")
    }
    assert found == {"sh": True, "/bin/sh": True, "./run": True, "opt/dash": False}
    for name in ("text", "ls", "../bin/sh", "/usr", "a\0"):
        assert why_not_run(root, name, "/srv", "/bin") == f"has no program {name}"


def test_programs_that_cannot_start_in_an_image_are_refused_early(unpacked):
    root = unpacked([file("bin/start", "#!/bin/bash -e\n", 0o755), file("srv", "1"), file("etc/app/x", "1")])
    assert why_not_run(root, "start", "/", "/bin") == "has no /bin/bash, which its start needs"
    assert no_place(root, "/srv", ()) == "it starts in /srv (WorkingDir), and /srv is no folder"
    assert no_place(root, "/srv/a/b", ()) == "it starts in /srv/a/b (WorkingDir), and /srv is no folder"
    assert no_place(root, "/etc/app/none/a", ()) is None
    (root / "link").symlink_to("/none/there")
    assert no_place(root, "link/a", ()) == "it starts in link/a (WorkingDir), and /link is no folder"
    for name, target in (("dev", "/none"), ("proc", "/bin"), ("tmp", "/srv")):
        (root / name).symlink_to(target)
        assert no_place(root, "/", ()) == f"/{name} is no folder, and each program needs one there"
        (root / name).unlink()
    for target, fits in (("/none/there", False), ("/bin", False), ("app/x", True), ("new", True)):
        (root / "etc/hosts").symlink_to(target)
        assert (no_place(root, "/", ()) is None) is fits
        (root / "etc/hosts").unlink()
    assert no_place(root, "/new", ["/etc/app"]) == "/etc/app is a folder, and `files` has a file there"
    assert no_place(root, "/new", ["/etc/app/x", "own.conf"]) is None


def test_a_program_for_another_processor_does_not_run(unpacked):
    root = unpacked([other("bin", DIRTYPE)])
    for machine, problem in ((b"\x08\0", "has a it for another processor"), (b"\x3e\0", None)):
        (root / "bin/it").write_bytes(b"\x7fELF\2\1\1" + bytes(9) + b"\2\0" + machine + bytes(40))
        (root / "bin/it").chmod(0o755)
        if problem or platform.machine() == "x86_64":
            assert why_not_run(root, "it", "/", "/bin") == problem


def test_zeros_take_no_disk_space(unpacked):
    found = (unpacked([file("large", "1" + (64 << 20) * "\0")]) / "large").stat()
    assert found.st_size == (64 << 20) + 1
    assert found.st_blocks * 512 < 4 << 20


@pytest.mark.parametrize(
    "entries",
    [
        [file("large", (3 << 20) * "1")],
        [file(f"small{number}", "1") for number in range(1100)],
        [other(f"link{number}", SYMTYPE, "x") for number in range(1100)],
        [file(f"deep{number}/{'a/' * 220}x", "1") for number in range(5)],
    ],
    ids=["with its copy", "small files", "links", "folders that no entry names"],
)
def test_layers_that_would_fill_the_disk_are_refused(unpacked, monkeypatch, tmp_path, entries):
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=8 << 20))
    with pytest.raises(ImageError, match=r"more than .* files, or 0.0 GiB, half of what is free on the disk"):
        unpacked(entries)
    taken = sum(path.lstat().st_blocks for path in (tmp_path / "made").rglob("*")) * 512
    assert taken <= 4 << 20


def test_files_for_which_the_disk_has_no_inodes_are_refused(unpacked, monkeypatch):
    room = SimpleNamespace(f_files=20, f_favail=10, f_blocks=9e6, f_bfree=9e6, f_bavail=9e6, f_frsize=4096)
    monkeypatch.setattr(os, "statvfs", lambda _: room)
    with pytest.raises(ImageError, match="more than 5 files"):
        unpacked([file(str(number)) for number in range(6)])


def test_folders_in_too_many_folders_are_refused(unpacked):
    with pytest.raises(ImageError, match=r"a/a/.* is in more than 256 folders$"):
        unpacked([file("a/" * 1500 + "x", "1")])


def header(kind, size, name="x"):
    """Return a header whose content of zeros tarfile would read whole."""
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, size
    return info.tobuf(tarfile.GNU_FORMAT) + bytes(max(0, size))


def attributes(*given):
    """Return an entry with extended attributes, each `name=value`."""
    info = tarfile.TarInfo("x")
    info.pax_headers = dict(each.split("=") for each in given)
    return info.tobuf(tarfile.PAX_FORMAT)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (header(tarfile.XHDTYPE, (1 << 20) + 512), "a header is larger than 1 MiB"),
        (header(tarfile.GNUTYPE_LONGNAME, (1 << 20) + 512), "a header is larger than 1 MiB"),
        (header(tarfile.XHDTYPE, 512) * 2000, "recursion"),
        (header(tarfile.GNUTYPE_SPARSE, 0), "pack it without `--sparse`"),
        (attributes("GNU.sparse.major=1", "GNU.sparse.minor=0"), "pack it without `--sparse`"),
        (attributes("GNU.sparse.map=1,x"), "invalid literal"),
        (attributes("size=-1536"), "is damaged: an entry has a negative size"),
        (header(tarfile.REGTYPE, -512), "is damaged: an entry has a negative size"),
        (b"y" + header(tarfile.REGTYPE, 0)[1:], "it is damaged after 1024 B"),
        (header(tarfile.REGTYPE, 0)[:300], "it is damaged after 1024 B"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_layer_with_an_impossible_header_is_damaged(tmp_path, content, problem):
    layer = tar_of([file("a", "1")])[:1024] + content
    layout = oci(tmp_path / "layout", {"it": (configuration([layer]), [layer])})
    (tmp_path / "root").mkdir()
    with opened(layout) as files, pytest.raises(ImageError, match=problem):
        unpack(files, described(files), tmp_path / "root", keeps_owners=False)
    with gzip.open(tmp_path / "archive", "wb") as archive:
        archive.write(content)
    with pytest.raises(ImageError, match="is damaged"), opened(tmp_path / "archive"):
        pass


def test_the_version_of_a_debian_package_in_an_image_is_known(unpacked):
    status = "Package: redis\nVersion: 9\n\nPackage: nats-server\nStatus: ok\nVersion: 2.10.27-1\n"
    listed = file("var/lib/dpkg/info/nats-server.list", "/usr/bin/nats-server\n")
    root = unpacked([file("var/lib/dpkg/status", status), listed])
    assert debian_version(root, "nats-server") == "2.10.27-1"
    assert debian_version(root, "redis-server") is None


def test_pipes_and_links_out_of_the_image_are_not_read(unpacked, tmp_path):
    (tmp_path / "info").mkdir()
    (tmp_path / "info" / "it.list").write_text("/bin/it\n")
    (tmp_path / "status").write_text("Package: it\nVersion: 1\n")
    pipes = [other(f"var/lib/dpkg/info/{each}", FIFOTYPE) for each in ("a.list", "b.list")]
    root = unpacked([*pipes, other("var/lib/dpkg/status", FIFOTYPE), other("etc/passwd", FIFOTYPE)])
    assert debian_version(root, "it") is None
    with pytest.raises(NoSuchUserError):
        user_of("it", root / "etc/passwd", root / "etc/group")
    shutil.rmtree(root / "var/lib/dpkg")
    (root / "var/lib/dpkg").symlink_to(tmp_path)
    assert debian_version(root, "it") is None


@pytest.mark.parametrize("hides", [[], [file(".wh.up")]])
def test_modes_of_folders_replaced_by_links_are_not_applied(unpacked, tmp_path, hides):
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o700)
    folders = [other("up", DIRTYPE), other("up/victim", DIRTYPE, mode=0o777)]
    unpacked(folders, hides, [other("up", SYMTYPE, str(tmp_path))])
    assert stat.S_IMODE(victim.stat().st_mode) == 0o700


def test_modes_are_kept_without_the_bits_that_set_a_user(unpacked):
    root = unpacked(
        [
            *(other("dir", DIRTYPE, mode=0o555), file("dir/x", "1", 0o4751)),
            *(
                other("tmp", DIRTYPE, mode=0o1777),
                other("pipe", FIFOTYPE, mode=0o600),
                other("disk", BLKTYPE),
            ),
        ]
    )
    modes = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in root.rglob("*")}
    assert modes == {"dir": 0o755, "x": 0o751, "tmp": 0o1777, "pipe": 0o600}
    assert (root / "dir" / "x").stat().st_uid == os.getuid()


def test_a_changed_layer_is_detected(tmp_path):
    layer = tar_of([file("a", "1")])
    layout = oci(tmp_path / "layout", {"it": (configuration([layer]), [layer])})
    blob = layout / "blobs" / "sha256" / digest(layer)[7:]
    blob.write_bytes(layer.replace(b"1", b"2", 1))
    (tmp_path / "root").mkdir()
    with opened(layout) as files, pytest.raises(ImageError, match="is damaged: layer"):
        unpack(files, described(files), tmp_path / "root", keeps_owners=False)
