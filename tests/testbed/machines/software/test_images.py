"""The transfer of an image to a machine: it arrives as planned, once, or not at all."""

import io
import os
import subprocess
import sys

import pytest

from node.core.program import Image
from systems.images.store import describe, pack, root_of
from testbed.machines.software.images import RECEIVER
from testbed.sandbox.requirements import has_other_users
from tests.systems.images.packed import configuration, file, oci, tar_of


@pytest.fixture
def received(tmp_path, monkeypatch):
    """Let a machine with its own store receive an image."""
    monkeypatch.setenv("CUTSET_IMAGES", str(tmp_path / "machine" / "images"))

    def answer(digest, content):
        command = [sys.executable, "-m", RECEIVER, digest]
        return subprocess.run(command, input=content, capture_output=True, check=False, env=os.environ)

    return answer


def packed(path):
    layers = [tar_of([file("a", "1"), file("b", "1")]), tar_of([file(".wh.a")])]
    oci(path, {"it": (configuration(layers), layers)})
    image = Image(str(path), describe(str(path)).digest)
    stream = io.BytesIO()
    pack(image, stream)
    return image, stream.getvalue()


def test_a_machine_receives_an_image_once(tmp_path, received):
    image, content = packed(tmp_path / "layout")
    assert received(image.digest, content).stdout == b"want\nunpacked\n"
    root = root_of(image, keeps_owners=has_other_users())
    assert [each.name for each in root.iterdir()] == ["b"]
    assert received(image.digest, b"").stdout == b"have\n"


@pytest.mark.parametrize(
    "change", [lambda content: content[:2000], lambda content: content.replace(b"1", b"2")]
)
def test_another_image_than_the_planned_one_is_refused(tmp_path, received, change):
    image, content = packed(tmp_path / "layout")
    done = received(image.digest, change(content))
    assert (done.returncode, done.stdout, done.stderr.count(b"\n")) == (1, b"want\n", 1)
    left = (tmp_path / "machine" / "images").rglob("*")
    assert [each.name for each in left if each.is_file() and each.name != "lock"] == []
