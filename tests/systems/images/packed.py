"""Images as tools pack them, of this machine's programs, and with entries that no tool would write."""

import hashlib
import io
import json
import platform
import re
import shutil
import subprocess
import tarfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}[platform.machine()]
Entry = tarfile.TarInfo | tuple[tarfile.TarInfo, bytes]


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def file(name: str, content: str = "", mode: int = 0o644) -> Entry:
    info = tarfile.TarInfo(name)
    info.size, info.mode = len(content), mode
    return info, content.encode()


def other(name: str, kind: bytes, target: str = "", mode: int = 0o755) -> Entry:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode = kind, target, mode
    return info


def tar_of(entries: Iterable[Entry]) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as archive:
        for entry in entries:
            info, content = entry if isinstance(entry, tuple) else (entry, b"")
            archive.addfile(info, io.BytesIO(content))
    return held.getvalue()


def layer_of(*programs: str, more: Iterable[Entry] = ()) -> bytes:
    """Return a layer with programs of this machine and their libraries."""
    found = {f"/bin/{each}": shutil.which(each) for each in programs}
    said = subprocess.run(
        ["ldd", *found.values()], capture_output=True, text=True, check=False
    ).stdout  # also static ones
    libraries = {path: path for path in re.findall(r"(/\S+) \(0x", said)}
    return tar_of([*(_program(name, Path(path)) for name, path in (found | libraries).items()), *more])


def _program(name: str, path: Path) -> Entry:
    content = path.read_bytes()
    info = tarfile.TarInfo(name.lstrip("/"))
    info.size, info.mode = len(content), 0o755
    return info, content


def configuration(layers: Iterable[bytes], architecture: str = ARCHITECTURE, **given: Any) -> bytes:
    rootfs = {"type": "layers", "diff_ids": [digest(each) for each in layers]}
    return json.dumps(
        {"architecture": architecture, "os": "linux", "config": given, "rootfs": rootfs}
    ).encode()


def oci(
    folder: Path,
    images: Mapping[str, tuple[bytes, list[bytes]]],
    pack: Callable[[bytes], bytes] = lambda layer: layer,
) -> Path:
    """Write an OCI layout. images: configuration and layers by name. pack: compresses layers."""
    (folder / "blobs" / "sha256").mkdir(parents=True)

    def blob(content: bytes) -> dict[str, Any]:
        (folder / "blobs" / "sha256" / digest(content)[7:]).write_bytes(content)
        return {"digest": digest(content), "size": len(content)}

    manifests = []
    for name, (config, layers) in images.items():
        manifest = {"config": blob(config), "layers": [blob(pack(each)) for each in layers]}
        named = {"annotations": {"org.opencontainers.image.ref.name": name}}
        manifests.append({**blob(json.dumps(manifest).encode()), **named})
    (folder / "index.json").write_text(json.dumps({"schemaVersion": 2, "manifests": manifests}))
    return folder


def saved(path: Path, images: Mapping[str, tuple[bytes, list[bytes]]]) -> Path:
    """Write an archive as `docker save` does."""
    entries: dict[str, bytes] = {}
    listed = []
    for name, (config, layers) in images.items():
        names = [f"{digest(each)[7:]}/layer.tar" for each in layers]
        entries |= dict(zip(names, layers, strict=True)) | {f"{digest(config)[7:]}.json": config}
        listed.append({"Config": f"{digest(config)[7:]}.json", "RepoTags": [name], "Layers": names})
    entries["manifest.json"] = json.dumps(listed).encode()
    with tarfile.open(path, "w") as archive:
        for name, content in entries.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path
