"""A program that runs on a machine: unpacks an archive from standard input, unless it is unpacked already.

`python3 -c THIS FOLDER SHA256 SIZE [PATIENCE_S]`, with only the standard library. It prints `have` if
FOLDER/SHA256 exists. Otherwise it prints `want`, reads SIZE bytes, checks their hash, unpacks them into a
temporary folder, renames that, and prints `unpacked`; so a folder of that name is complete. After a power
failure, files may not have reached the disk: a folder is therefore valid only for the boot in which it was
unpacked, and is replaced after the next boot.

Root will run this code, so no other user may be able to change it
(`testbed.machines.software.trusted_folders`). Errors: exit code 1 with the reason on standard error. The
kernel ends the program if it receives no data for PATIENCE_S.
"""

import contextlib
import gzip
import hashlib
import io
import os
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

from testbed.machines.software.trusted_folders import make_trusted, require_trusted
from testbed.machines.ssh.time_limit import limited

BOOT = Path("/proc/sys/kernel/random/boot_id")
PATIENCE_S = 60.0
EXECUTABLE = 0o100  # by its owner
UNPACKED_IN = "unpacked-in"  # a file in an unpacked folder with the boot's id


def main(folder: Path, sha256: str, size: int, patience_s: float = PATIENCE_S) -> None:
    """Unpack the archive into FOLDER/SHA256 unless it exists. Raises OSError, ValueError."""
    make_trusted(folder)
    target = folder / sha256
    if is_there(target):
        require_trusted(target)
        say("have")
        return
    say("want")
    content = received(size, patience_s)
    if hashlib.sha256(content).hexdigest() != sha256:
        raise ValueError(f"received {len(content)} of {size} bytes, or wrong ones")
    part = Path(tempfile.mkdtemp(prefix=f"{sha256}.part.", dir=folder))
    try:
        unpack(content, part)
        (part / UNPACKED_IN).write_text(BOOT.read_text())
        part.chmod(0o755)
        put_in_place(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    say("unpacked")


def received(size: int, patience_s: float) -> bytes:
    """Read `size` bytes of standard input, fewer if it ends before."""
    content = bytearray()
    while len(content) < size:
        with limited(patience_s):
            piece = os.read(0, size - len(content))
        if not piece:
            break
        content += piece
    return bytes(content)


def is_there(target: Path) -> bool:
    """Return whether the archive was unpacked since the machine booted."""
    with contextlib.suppress(OSError):
        return (target / UNPACKED_IN).read_text() == BOOT.read_text()
    return False


def unpack(content: bytes, folder: Path) -> None:
    """Write the files of a gzipped tar into a folder. Raises ValueError for a name that would leave it."""
    made = set()
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(content))) as tar:
        for member in tar:
            name = Path(member.name)
            data = tar.extractfile(member)
            if data is None or name.is_absolute() or ".." in name.parts:
                raise ValueError(f"not a plain file below the folder: {name}")
            if name.parent not in made:
                (folder / name.parent).mkdir(parents=True, exist_ok=True)
                made.add(name.parent)
            (folder / name).write_bytes(data.read())
            if member.mode & EXECUTABLE:
                (folder / name).chmod(0o755)


def put_in_place(part: Path, target: Path) -> None:
    """Rename the folder, unless another process has just done so; replace one from before the last boot."""
    if is_there(target):
        return
    if target.exists():
        target.rename(part / "before")
    part.rename(target)
    shutil.rmtree(target / "before", ignore_errors=True)


def say(word: str) -> None:
    """Write one line to standard output."""
    sys.stdout.write(word + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), *map(float, sys.argv[4:]))
    except (OSError, ValueError, tarfile.TarError) as error:
        sys.exit(str(error))
