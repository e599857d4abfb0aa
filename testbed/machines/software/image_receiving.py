"""A program that runs on a machine, with our code: receives an image, unless the machine has it.

`python -m testbed.machines.software.image_receiving DIGEST` prints `have` if the image is unpacked there.
Otherwise it prints `want`, reads the image to the end of standard input, unpacks it into the store that
CUTSET_IMAGES names, which checks all digests, and prints `unpacked`. Errors: exit code 1 with the reason on
standard error. The kernel ends the program if it receives no data for `PATIENCE_S`.
"""

import os
import sys
import tempfile
from pathlib import Path

from node.core.program import Image
from systems.images.archives import ImageError
from systems.images.store import STORE_VARIABLE, ensure_unpacked, root_of
from testbed.machines.software.trusted_folders import make_trusted
from testbed.machines.software.unpacking import PATIENCE_S, say
from testbed.machines.ssh.time_limit import limited
from testbed.sandbox.requirements import has_other_users

PIECE_BYTES = 1 << 20


def main(digest: str) -> None:
    """Receive one image. Raises OSError, ImageError."""
    keeps_owners, store = has_other_users(), Path(os.environ[STORE_VARIABLE])
    make_trusted(store)
    if root_of(Image("", digest), keeps_owners=keeps_owners).is_dir():
        say("have")
        return
    say("want")
    with tempfile.NamedTemporaryFile(dir=store) as packed:
        while True:
            with limited(PATIENCE_S):
                piece = os.read(0, PIECE_BYTES)
            if not piece:
                break
            packed.write(piece)
        packed.flush()
        ensure_unpacked(Image(packed.name, digest), keeps_owners=keeps_owners)
    os.sync()  # a folder in the store is complete, also after a power failure
    say("unpacked")


if __name__ == "__main__":
    try:
        main(sys.argv[1])
    except (OSError, ImageError) as error:
        sys.exit(str(error))
