"""Archives of images: every layout describes the same image; invalid ones are refused in one line."""

import gzip
import json
import os
import shutil
import tarfile

import pyarrow
import pytest

from systems.images.archives import ImageError, described, opened
from tests.systems.images.packed import ARCHITECTURE, configuration, digest, file, oci, saved, tar_of

LAYER = tar_of([file("etc/motd", "hello")])
CONFIG = configuration(
    [LAYER],
    Entrypoint=["/run.sh"],
    Cmd=["-v"],
    Env=["A=1=2"],
    User="me:us",
    WorkingDir="/srv",
    StopSignal="3",
)
ONE = {"one:1": (CONFIG, [LAYER])}


def describe(path, name=""):
    with opened(path) as files:
        return described(files, name)


def as_archive(folder, path):
    with tarfile.open(path, "w:gz") as archive:
        for each in sorted(folder.rglob("*")):
            archive.add(each, each.relative_to(folder), recursive=False)
    return path


def as_skopeo_dir(tmp_path):
    """Return the layout `dir:`: the manifest, with the blobs beside it."""
    layout = oci(tmp_path / "layout", ONE)
    flat = layout / "blobs" / "sha256"
    manifest = json.loads((layout / "index.json").read_text())["manifests"][0]["digest"]
    shutil.copy(flat / manifest.removeprefix("sha256:"), flat / "manifest.json")
    return flat


@pytest.mark.parametrize(
    "pack",
    [
        lambda tmp_path: oci(tmp_path / "layout", ONE),
        lambda tmp_path: oci(tmp_path / "layout", ONE, gzip.compress),
        lambda tmp_path: oci(
            tmp_path / "layout", ONE, lambda each: pyarrow.compress(each, "zstd", asbytes=True)
        ),
        lambda tmp_path: as_archive(oci(tmp_path / "layout", ONE), tmp_path / "oci.tar.gz"),
        lambda tmp_path: saved(tmp_path / "saved.tar", ONE),
        as_skopeo_dir,
    ],
    ids=["oci", "gzip", "zstd", "archive", "docker", "dir"],
)
def test_each_layout_has_the_same_image(tmp_path, pack):
    found = describe(pack(tmp_path))
    assert found.digest == digest(CONFIG)
    assert [diff_id for _, diff_id in found.layers] == [digest(LAYER)]
    assert (found.run, found.env) == (("/run.sh", "-v"), {"A": "1=2"})
    assert (found.user, found.folder, found.stop_signal) == ("me:us", "/srv", "3")


@pytest.mark.parametrize("pack", [oci, saved])
def test_one_of_several_images_is_chosen_by_its_name(tmp_path, pack):
    two = configuration([LAYER], Cmd=["two"])
    path = pack(tmp_path / "both", {**ONE, "two:2": (two, [LAYER])})
    assert describe(path, "two:2").run == ("two",)
    with pytest.raises(ImageError, match="has 2 images: append a colon and one of: one:1, two:2"):
        describe(path)
    with pytest.raises(ImageError, match="has no image named three; it has one:1, two:2"):
        describe(path, "three")


def test_an_index_of_platforms_leads_to_the_image_for_this_machine(tmp_path):
    layout = oci(tmp_path / "layout", ONE)
    index = json.loads((layout / "index.json").read_text())
    [mine] = index["manifests"]
    here = {**mine, "platform": {"os": "linux", "architecture": ARCHITECTURE}}
    away = {"digest": digest(b""), "size": 0, "platform": {"os": "linux", "architecture": "mips"}}
    inner = json.dumps({"manifests": [away, here]}).encode()
    (layout / "blobs" / "sha256" / digest(inner)[7:]).write_bytes(inner)
    (layout / "index.json").write_text(json.dumps({"manifests": [{"digest": digest(inner), "size": 1}]}))
    assert describe(layout).digest == digest(CONFIG)


def test_an_image_of_another_machine_is_refused(tmp_path):
    config = configuration([LAYER], architecture="s390x")
    with pytest.raises(
        ImageError, match=f"is an image for linux/s390x, and this machine is linux/{ARCHITECTURE}"
    ):
        describe(oci(tmp_path / "layout", {"a": (config, [LAYER])}))


def test_a_changed_description_is_detected(tmp_path):
    layout = oci(tmp_path / "layout", ONE)
    blob = layout / "blobs" / "sha256" / digest(CONFIG)[7:]
    blob.write_bytes(CONFIG.replace(b"/run.sh", b"/bad.sh"))
    with pytest.raises(ImageError, match="is damaged: the content of blobs/sha256/"):
        describe(layout)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({}, "it has neither index.json"),
        ({"manifest.json": "["}, "^manifest.json is not valid: JSON: "),
        ({"index.json": 200_000 * "["}, "^index.json is not valid: JSON: "),
        ({"manifest.json": "[]"}, "has no image for"),
        ({"manifest.json": '[{"Config": "../../etc/passwd", "Layers": []}]'}, "it has no ../../etc/passwd"),
        ({"index.json": '{"manifests": [{"digest": "sha256:../../x"}]}'}, "manifests.0.digest"),
        ({"index.json": json.dumps({"manifests": [{"digest": digest(b"")}]})}, "it has no blobs/sha256/e3b0"),
    ],
)
def test_a_file_without_an_image_is_refused(tmp_path, content, problem):
    for name, text in content.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ImageError, match=problem):
        describe(tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"5", "JSON: Input should be an object"),
        (b"{", "JSON: "),
        (b"\xff\xfe", "JSON: "),
        (200_000 * b"[", "JSON: Invalid JSON: recursion limit exceeded"),
        (b"{}", "config: Field required"),
        (b'{"manifests": 5}', "manifests: Input should be a valid array"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_invalid_manifest_is_reported_with_its_field(tmp_path, content, problem):
    (tmp_path / "blobs" / "sha256").mkdir(parents=True)
    (tmp_path / "blobs" / "sha256" / digest(content)[7:]).write_bytes(content)
    (tmp_path / "index.json").write_text(json.dumps({"manifests": [{"digest": digest(content)}]}))
    with pytest.raises(ImageError, match=f"^blobs/sha256/{digest(content)[7:]} is not valid: {problem}"):
        describe(tmp_path)


@pytest.mark.parametrize(
    ("setting", "value", "problem"),
    [
        ("Env", ["A=1", "B=x\0"], "config.Env.1: has a NUL"),
        ("Env", ["=x"], "config.Env.0: =x has no name"),
        ("Cmd", ["a\0"], "config.Cmd.0: has a NUL"),
        ("Entrypoint", ["a\0"], "config.Entrypoint.0: has a NUL"),
        ("WorkingDir", "/a\0", "config.WorkingDir: has a NUL"),
        ("WorkingDir", "/x/../../y", "config.WorkingDir: /x/../../y has `..`"),
    ],
)
def test_settings_with_which_no_program_starts_are_refused(tmp_path, setting, value, problem):
    config = configuration([LAYER], **{setting: value})
    with pytest.raises(ImageError, match=f"^blobs/sha256/{digest(config)[7:]} is not valid: {problem}"):
        describe(oci(tmp_path / "layout", {"a": (config, [LAYER])}))


def test_a_pipe_is_refused_without_waiting(tmp_path):
    os.mkfifo(tmp_path / "pipe.tar")
    with pytest.raises(ImageError, match="neither a folder nor a file"):
        describe(tmp_path / "pipe.tar")


def test_a_file_that_is_no_archive_is_refused(tmp_path):
    whole = saved(tmp_path / "whole.tar", ONE).read_bytes()
    packed = bytearray(gzip.compress(whole))
    packed[200:220] = bytes(20)
    for content in (b"", b"text", whole[:700], packed):
        (tmp_path / "bad.tar").write_bytes(content)
        with pytest.raises(ImageError) as refused:
            describe(tmp_path / "bad.tar")
        assert "\n" not in str(refused.value)
