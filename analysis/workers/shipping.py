"""Our own modules for a cluster's executors: one zip file that the job itself brings along.

It holds the packages that tasks are made of, as they are here; numpy and pyarrow the executors have.
"""

import zipfile
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parent.parent.parent
PACKAGES = ("analysis", "experiments", "node", "topologies")


def write_modules(path: Path) -> Path:
    """Write the zip file, which Python can import from; returns its path."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for package in PACKAGES:
            for file in sorted((CHECKOUT / package).rglob("*.py")):
                archive.write(file, file.relative_to(CHECKOUT))
    return path
