"""An image in a folder or archive, as docker save, podman save, skopeo copy, buildah and umoci write them.

Three layouts: OCI (index.json and blobs/), Docker's (a manifest.json that lists images) and skopeo's `dir:`
(a manifest.json and blobs beside it). Each is a folder or a tar file, also a compressed one.

Nothing in them is trusted. The digest of the configuration is the image's; the configuration has the digest
of each layer, which is checked when the layer is unpacked. Source: OCI Image Format Specification 1.1; Docker
Image Specification 1.2.
"""

import contextlib
import hashlib
import lzma
import platform
import tarfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, TypeAdapter, ValidationError

JSON_BYTES_MAX = 8 << 20
LAYERS_MAX = 500
FILES_MAX = 10_000
"""Files of an archive, each a layer or a description of one of its images."""
HEADER_BYTES_MAX = 1 << 20
"""Extended headers, which tarfile reads whole: long names and attributes (pax(1))."""
PATH_CHARACTERS_MAX = 4096
EXTENDED = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
TAR_ERRORS = (
    tarfile.TarError,
    ValueError,
    OverflowError,
    EOFError,
    zlib.error,
    lzma.LZMAError,
    RecursionError,
)
"""Errors of tarfile for a damaged archive; RecursionError: a header for a header for a header."""
INDEXES_MAX = 3
"""Nested indexes: one per registry's list of platforms is usual."""
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
"""Names in images by those of uname(1), if they differ."""
BLOBS = "blobs/sha256/"
NAME = "org.opencontainers.image.ref.name"
VERSION = "org.opencontainers.image.version"
Content = TypeVar("Content")
EntryKind = TypeVar("EntryKind", bound=tarfile.TarInfo)
Digest = Annotated[str, Field(pattern=r"^sha256:[0-9a-f]{64}$")]
Empty = BeforeValidator(lambda given: () if given is None else given)
Texts = Annotated[tuple[str, ...], Empty]


SPARSE = "it has a sparse file, whose map of holes may have any size: pack it without `--sparse`"


class ImageError(Exception):
    """An image cannot be used; the message names it and the reason."""


class CheckedEntry(tarfile.TarInfo):
    """An archive entry whose declared header sizes are checked, because a false size would fill the
    memory.
    """

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        """Parse a header. Raises tarfile.TarError."""
        found = super().frombuf(buf, encoding, errors)
        if found.type in EXTENDED and found.size > HEADER_BYTES_MAX:
            raise tarfile.TarError(f"a header is larger than {HEADER_BYTES_MAX >> 20} MiB")
        if found.type == tarfile.GNUTYPE_SPARSE:
            raise tarfile.TarError(SPARSE)
        return _checked(found)

    @classmethod
    def fromtarfile(cls, tarfile: tarfile.TarFile) -> Self:
        """Read the next entry. Raises tarfile.TarError."""
        found = _checked(super().fromtarfile(tarfile))
        found.pax_headers = tarfile.pax_headers = {}  # they are applied
        return found

    def _proc_gnusparse_10(self, *_: object) -> None:
        """Refuse the kind of sparse file whose map of holes tarfile reads whole."""
        raise tarfile.TarError(SPARSE)


def _checked(entry: EntryKind) -> EntryKind:
    if entry.size < 0:
        raise tarfile.TarError("it is damaged: an entry has a negative size")
    if max(len(entry.name), len(entry.linkname)) > PATH_CHARACTERS_MAX:
        raise tarfile.TarError(f"a name is longer than {PATH_CHARACTERS_MAX} characters")
    return entry


class _Platform(BaseModel):
    architecture: str = ""
    os: str = ""


class _Descriptor(BaseModel):
    digest: Digest
    platform: _Platform | None = None
    annotations: dict[str, str] | None = None

    @property
    def name(self) -> str:
        return (self.annotations or {}).get(NAME, "")

    @property
    def is_for_here(self) -> bool:
        return self.platform is None or (self.platform.os, self.platform.architecture) == _here()


class _Index(BaseModel):
    manifests: Annotated[tuple[_Descriptor, ...], Field(max_length=LAYERS_MAX)]


class _MaybeIndex(BaseModel):
    manifests: Any = None


class _Manifest(BaseModel):
    config: _Descriptor
    layers: Annotated[tuple[_Descriptor, ...], Field(max_length=LAYERS_MAX)]


class _SavedImage(BaseModel):
    """One image in the manifest.json of `docker save`."""

    config: str = Field(alias="Config")
    names: Texts = Field((), alias="RepoTags")
    layers: Annotated[tuple[str, ...], Field(max_length=LAYERS_MAX)] = Field(alias="Layers")


def _argument(given: str) -> str:
    if "\0" in given:
        raise ValueError("has a NUL, which a program cannot get")
    return given


def _variable(given: str) -> str:
    if given.startswith("="):
        raise ValueError(f"{given} has no name")
    return _argument(given)


def _folder(given: str) -> str:
    if ".." in given.split("/"):
        raise ValueError(f"{given} has `..`: name the folder that it leads to")
    return _argument(given)


Arguments = Annotated[tuple[Annotated[str, AfterValidator(_argument)], ...], Empty]


class _Execution(BaseModel):
    entrypoint: Arguments = Field((), alias="Entrypoint")
    command: Arguments = Field((), alias="Cmd")
    env: Annotated[tuple[Annotated[str, AfterValidator(_variable)], ...], Empty] = Field((), alias="Env")
    user: str = Field("", alias="User", max_length=200)
    folder: Annotated[str, AfterValidator(_folder)] = Field("", alias="WorkingDir", max_length=4096)
    stop_signal: str = Field("", alias="StopSignal", max_length=40)
    labels: Annotated[dict[str, str], BeforeValidator(lambda given: {} if given is None else given)] = Field(
        default_factory=dict, alias="Labels"
    )


class _Layers(BaseModel):
    diff_ids: Annotated[tuple[Digest, ...], Field(max_length=LAYERS_MAX)]


class _Configuration(BaseModel):
    architecture: str
    os: str
    config: Annotated[_Execution, BeforeValidator(lambda given: {} if given is None else given)] = Field(
        default_factory=lambda: _Execution.model_validate({})
    )
    rootfs: _Layers


@dataclass(frozen=True, slots=True)
class ImageDescription:
    """An image's content. digest: of its configuration, which is as it was read. layers: name in the archive,
    and digest of the uncompressed content, from the lowest. run: entrypoint and command. version: by its
    label. The rest are "" if not given.
    """

    digest: str
    configuration: bytes
    layers: tuple[tuple[str, str], ...]
    run: tuple[str, ...]
    env: Mapping[str, str]
    user: str
    folder: str
    stop_signal: str
    version: str


class Files:
    """The files of an archive or folder, by name."""

    def __init__(self, path: Path, archive: tarfile.TarFile | None) -> None:
        self._path, self._archive = path, archive
        self._members: dict[str, tarfile.TarInfo] = {}
        for number, each in enumerate(archive or (), 1):
            self._members[each.name.removeprefix("./")] = each
            if number > FILES_MAX:
                raise ImageError(f"{path} has more than {FILES_MAX:,} files")

    def has(self, name: str) -> bool:
        """Return whether there is a file of this name."""
        return name in self._members if self._archive else (self._path / name).is_file()

    def open(self, name: str) -> IO[bytes]:
        """Open a file. Raises ImageError."""
        found: IO[bytes] | None = None
        with contextlib.suppress(OSError, KeyError, ValueError):
            if self._archive is not None:
                found = self._archive.extractfile(self._members[name])
            elif (place := (self._path / name).resolve()).is_relative_to(self._path.resolve()):
                found = place.open("rb") if place.is_file() else None  # a pipe would wait
        if found is None:
            raise ImageError(f"{self._path} is incomplete: it has no {name}")
        return found

    def read(self, name: str) -> bytes:
        """Return the content of a small file. Raises ImageError."""
        with self.open(name) as stream:
            content = stream.read(JSON_BYTES_MAX + 1)
        if len(content) > JSON_BYTES_MAX:
            raise ImageError(f"{self._path}: {name} is larger than {JSON_BYTES_MAX >> 20} MiB")
        return content


@contextmanager
def opened(path: Path) -> Iterator[Files]:
    """Open an image's folder or archive. Raises ImageError, also if it turns out to be damaged."""
    try:
        with contextlib.ExitStack() as stack:
            is_folder = path.is_dir()
            if not is_folder and path.exists() and not path.is_file():
                raise ImageError(f"{path} is neither a folder nor a file")
            yield Files(
                path,
                None if is_folder else stack.enter_context(tarfile.open(path, tarinfo=CheckedEntry)),
            )
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror or error}") from None
    except TAR_ERRORS as error:
        reason = str(error).partition("\n")[0].rstrip(":")  # then what it said as each kind of archive
        raise ImageError(f"{path} is no archive of an image, or is damaged: {reason}") from None


def described(files: Files, name: str = "") -> ImageDescription:
    """Return the image of an archive. name: which one, if there are several. Raises ImageError."""
    if files.has("manifest.json"):
        return _saved(files, name)
    if files.has("index.json"):
        return _from_manifest(files, *_chosen(files, name), BLOBS)
    raise ImageError("is no image: it has neither index.json (OCI) nor manifest.json (docker save)")


def _saved(files: Files, name: str) -> ImageDescription:
    """Return an image with a manifest.json: a list of images (docker save), or the manifest (dir:)."""
    content = files.read("manifest.json")
    if not content.lstrip().startswith(b"["):
        return _from_manifest(files, "manifest.json", content, "")
    saved = _validated(tuple[_SavedImage, ...], content, "manifest.json")
    wanted = _only(
        [each for each in saved if not name or name in each.names], name, *(s.names for s in saved)
    )
    return _description(wanted.config, files.read(wanted.config), wanted.layers)


def _chosen(files: Files, name: str) -> tuple[str, bytes]:
    """Return the manifest that index.json names for this kind of machine, maybe by further indexes: its
    file and content.
    """
    file, content = "index.json", files.read("index.json")
    for _ in range(INDEXES_MAX):
        found = _validated(_Index, content, file).manifests
        fitting = [each for each in found if each.is_for_here and name in {"", each.name}]
        wanted = _only(fitting, name, *((each.name,) for each in found))
        file, content = _blob(files, BLOBS, wanted.digest)
        if _validated(_MaybeIndex, content, file).manifests is None:
            return file, content
        name = ""
    raise ImageError("has too many nested indexes")


def _from_manifest(files: Files, file: str, content: bytes, folder: str) -> ImageDescription:
    manifest = _validated(_Manifest, content, file)
    config = _blob(files, folder, manifest.config.digest)
    return _description(*config, [folder + _hex(each.digest) for each in manifest.layers])


def _blob(files: Files, folder: str, digest: str) -> tuple[str, bytes]:
    name = folder + _hex(digest)
    content = files.read(name)
    if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
        raise ImageError(f"is damaged: the content of {name} has another digest")
    return name, content


def _description(file: str, content: bytes, layers: list[str] | tuple[str, ...]) -> ImageDescription:
    configuration = _validated(_Configuration, content, file)
    if (configuration.os, configuration.architecture) != _here():
        made, here = f"{configuration.os}/{configuration.architecture}", "/".join(_here())
        raise ImageError(f"is an image for {made}, and this machine is {here}")
    diff_ids = configuration.rootfs.diff_ids
    if len(diff_ids) != len(layers):
        raise ImageError(f"is damaged: {len(layers)} layers, but {len(diff_ids)} digests")
    run = configuration.config
    return ImageDescription(
        f"sha256:{hashlib.sha256(content).hexdigest()}",
        content,
        tuple(zip(layers, diff_ids, strict=True)),
        (*run.entrypoint, *run.command),
        dict(each.split("=", 1) for each in run.env if "=" in each),
        run.user,
        run.folder,
        run.stop_signal,
        run.labels.get(VERSION, ""),
    )


def _only(found: list[Content], name: str, *names: tuple[str, ...]) -> Content:
    if len(found) == 1:
        return found[0]
    known = ", ".join(sorted({each for group in names for each in group if each}))
    if not found:
        wanted = f"named {name}" if name else f"for {'/'.join(_here())}"
        raise ImageError(f"has no image {wanted}" + (f"; it has {known}" if known else ""))
    how = f"append a colon and one of: {known}" if known else "save one alone"
    raise ImageError(f"has {len(found)} images: {how}")


def _validated(model: Any, content: bytes, file: str) -> Any:
    try:
        return TypeAdapter(model).validate_json(content)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        at = ".".join(map(str, first["loc"]))
        problem = first["msg"].removeprefix("Value error, ")
        raise ImageError(f"{file} is not valid: {at or 'JSON'}: {problem}") from None


def _hex(digest: str) -> str:
    return digest.removeprefix("sha256:")


def _here() -> tuple[str, str]:
    return "linux", ARCHITECTURES.get(platform.machine(), platform.machine())
