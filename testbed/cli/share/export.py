"""`cutset export`: packs a run or a sweep into one file."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from testbed.cli.options import NEW_FILE, run_argument

if TYPE_CHECKING:
    from experiments.records.rundir import RunDirectory


@click.command(name="export")
@run_argument
@click.option(
    "--captures/--no-captures",
    default=True,
    show_default=True,
    help="With or without the captures; without them the run can be read, but not analysed again.",
)
@click.option(
    "--keys/--no-keys",
    default=True,
    show_default=True,
    help="With the keys of TLS connections, if programs logged them: they decrypt the captures.",
)
@click.option(
    "-o",
    "--output",
    type=NEW_FILE,
    help="The archive.  [default: RUN.tar.zst here, or RUN-no-captures.tar.zst]",
)
@click.option("--force", is_flag=True, help="Replace an existing archive.")
def command(run_name: str, captures: bool, keys: bool, output: Path | None, force: bool) -> None:
    """Pack a run, or a sweep, into one archive.

    Commands unpack an archive below runs/ first; `tar --zstd -xf FILE` unpacks it by hand. It also contains
    claims.json (each figure with its tolerance) and SHA256SUMS (the hash of each file), by which `cutset
    verify` and sha256sum(1) can check it. Exit codes: 0 packed, 2 no such run, or the archive cannot be
    written or exists already, 3 another command makes or analyses it.
    """
    from experiments.archives.packing import ENDING, pack
    from testbed.campaign.in_use import reading
    from testbed.cli.named_run import named
    from testbed.cli.output import check_directory
    from topologies.errors import InputError

    found = named(run_name)
    kind = "" if captures else "-no-captures"
    archive = output or Path(f"{found.path.absolute().name}{kind}{ENDING}")
    if not archive.name.endswith(ENDING):
        raise InputError(str(archive), None, "", f"should end with {ENDING}, so that commands recognise it")
    check_directory(archive)
    if not force and archive.exists():  # it may be the only copy of its captures
        raise InputError(
            str(archive), None, "", "exists already: replace it with --force, or set another with -o"
        )
    with reading(found.path):
        packed = pack(found.path, archive, captures=captures, keys=keys, claims_of=_claims)
    without = "" if captures else ", without captures"
    along = ", with the keys of its TLS connections" if packed.keys else ""
    click.echo(
        f"packed {packed.files} files, {packed.bytes / 1e6:,.1f} MB{without}{along}, as {archive} "
        f"({packed.archive_bytes / 1e6:,.1f} MB)"
    )


def _claims(run: "RunDirectory") -> dict[str, Any] | None:
    """Return the claims of a run; None if it was not analysed, or its summary cannot be read."""
    from analysis.claims import claims, to_json
    from topologies.errors import InputError

    try:
        return to_json(claims(run.read_summary()))
    except InputError:
        return None
