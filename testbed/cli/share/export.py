"""`cutset export`: a run, or a sweep, as one file for a colleague."""

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options import run_argument

if TYPE_CHECKING:
    from experiments.records.rundir import RunDirectory


@click.command(name="export")
@run_argument
@click.option(
    "--captures/--no-captures",
    default=True,
    show_default=True,
    help="With the captures, or without them: then it can be read, but not analysed again.",
)
@click.option(
    "--keys/--no-keys",
    default=True,
    show_default=True,
    help="With the keys of TLS connections, where programs logged them: who has them can read the captures.",
)
@click.option(
    "-o",
    "--output",
    metavar="FILE|URL",
    help="The archive, or where it goes (s3://…); unless given RUN.tar.zst here, or RUN-no-captures.tar.zst.",
)
@click.option("--force", is_flag=True, help="Replace the archive if it is there already.")
def command(run_name: str, captures: bool, keys: bool, output: str | None, force: bool) -> None:
    """Pack a run, or a sweep, into one archive.

    Commands unpack an archive below runs/ first; `tar --zstd -xf FILE` unpacks it by hand. In it stand, too,
    ro-crate-metadata.json (what ran, and every file with its hash) and claims.json (each figure with its
    tolerance), by which `cutset verify` and others can check it. Exit codes: 0 packed, 2 no such run, or the
    archive cannot be written or is there already, 3 another command makes or analyses it.
    """
    from experiments.archives.elsewhere import is_there, send
    from experiments.archives.packing import ENDING, pack
    from experiments.archives.stores import is_url, name_of
    from experiments.files.scratch import scratch
    from testbed.campaign.in_use import reading
    from testbed.cli.named_run import named
    from testbed.cli.output import check_directory
    from topologies.errors import InputError

    found = named(run_name)
    kind = "" if captures else "-no-captures"
    archive = output or f"{found.path.absolute().name}{kind}{ENDING}"
    away = is_url(archive)
    if not (name_of(archive) if away else archive).endswith(ENDING):
        raise InputError(archive, None, "", f"should end with {ENDING}, by which commands know it")
    if not away:
        check_directory(Path(archive))
    if not force and (is_there(archive) if away else Path(archive).exists()):
        # its captures may be nowhere else any more
        raise InputError(archive, None, "", "is there already: --force replaces it, -o names another")
    with scratch("cutset-export-", Path(tempfile.gettempdir())) as folder:
        place = folder / name_of(archive) if away else Path(archive)
        with reading(found.path):
            packed = pack(found.path, place, captures=captures, keys=keys, claims_of=_claims)
        if away:
            send(place, archive)
    without = "" if captures else ", without captures"
    along = ", with the keys of its TLS connections" if packed.keys else ""
    click.echo(
        f"packed {packed.files} files, {packed.bytes / 1e6:,.1f} MB{without}{along}, as {archive} "
        f"({packed.archive_bytes / 1e6:,.1f} MB)"
    )


def _claims(run: "RunDirectory") -> dict[str, Any] | None:
    """What a run claims; None if it was not analysed, or not well."""
    from analysis.claims import claims, to_json
    from topologies.errors import InputError

    try:
        return to_json(claims(run.read_summary()))
    except InputError:
        return None
