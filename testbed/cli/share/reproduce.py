"""`cutset reproduce`: an archived run again, here, and whether its claims hold."""

import signal
from pathlib import Path

import click

from testbed.cli.options import out_option, run_argument
from testbed.interrupts import handling, interrupt


@click.command(name="reproduce")
@run_argument
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    help="Make it so many times; unless given 5, in virtual time once.",
)
@click.option(
    "--seed",
    type=int,
    help="Other seeds than the archive's: this for the first repeat, the next for each further one.",
)
@click.option("--point", metavar="NAME", help="Of an archived sweep, which of its runs, as 1-r0.")
@click.option(
    "--on",
    "backend",
    metavar="PLACE",
    help="local (real processes), simulator (virtual time), or an inventory of machines (a YAML file);"
    " unless given, as the run was made.",
)
@click.option(
    "--within",
    type=click.FloatRange(0, 100),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="A figure holds that is off by less than this part of itself, however little the repeats differ.",
)
@click.option(
    "--trust-programs",
    is_flag=True,
    help="Start the programs that the run says, where they are not those that its system has here.",
)
@out_option
@click.option(
    "--resume",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Go on with a reproduction that was interrupted; its other options as before.",
)
def command(  # noqa: PLR0917 (click passes them by name)
    run_name: str,
    repeat: int | None,
    seed: int | None,
    point: str | None,
    backend: str | None,
    within: float,
    trust_programs: bool,
    out: Path,
    resume: Path | None,
) -> int:
    """Make an archived run again, several times, and hold each of its claims against that.

    The plan in the archive is carried out as it is: topology, faults, parameters, workload and seed, whatever
    the experiments of this checkout say. A claim holds if its figure, with its error bar and tolerance, is
    what one more of the repeats might have come to; it differs if not, and is undecided where fewer than
    three repeats measured it. A run in virtual time must come to exactly the same, to the byte of what its
    clients got. What is other about this machine and these versions is said in a line. The repeats stay, as
    a sweep.

    Exit codes: 0 every claim holds, 1 one differs or is undecided, 2 no such run, it is damaged, or it claims
    nothing, 3 this machine cannot do it, 130 interrupted.
    """
    from experiments.records.rundir import RunDirectory
    from testbed.campaign.backend_selection import check_backend
    from testbed.campaign.in_use import reading
    from testbed.campaign.reproduction.archived_run import read_archive, read_run
    from testbed.campaign.reproduction.reproducing import Wanted, reproduce
    from testbed.cli.named_run import named, named_sweep, packed

    if backend is not None:
        check_backend(backend)
    with packed(run_name) as archive:
        if archive is not None:
            archived = read_archive(archive, run_name, point, trust=trust_programs)
        else:
            found = named(run_name)
            name = found.path.name if isinstance(found, RunDirectory) else found.name
            with reading(found.path):
                archived = read_run(found, name, point, trust=trust_programs)
    going_on = None if resume is None else named_sweep(str(resume)).path
    given = {"--repeat": repeat, "--seed": seed, "--point": point, "--on": backend, "--within": f"{within:g}"}
    words = [word for option, value in given.items() if value is not None for word in (option, str(value))]
    wanted = Wanted.of(
        archived,
        backend=backend,
        repeat=repeat,
        seed=seed,
        within=within / 100,
        resume=going_on,
        given=[run_name, *words, *(["--trust-programs"] if trust_programs else [])],
    )
    with handling({signal.SIGTERM: interrupt}):
        return reproduce(wanted, out)
