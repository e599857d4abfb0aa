"""`cutset reproduce`: repeats an archived run here, and checks whether its claims hold."""

import signal
from pathlib import Path

import click

from testbed.cli.options import FOLDER, FiniteRange, out_option, run_argument
from testbed.interrupts import handling, interrupt


@click.command(name="reproduce")
@run_argument
@click.option(
    "--repeat",
    type=click.IntRange(1, 1000),
    help="Number of repeats.  [default: 5; in virtual time 1]",
)
@click.option("--point", metavar="NAME", help="The run of an archived sweep, as 1-r0.")
@click.option(
    "--on",
    "backend",
    metavar="PLACE",
    help="local (real processes), simulator (virtual time), or an inventory of machines (a YAML file)."
    "  [default: as the run was made]",
)
@click.option(
    "--within",
    type=FiniteRange(0, 100),
    default=10.0,
    show_default=True,
    metavar="PERCENT",
    help="A figure holds if it differs by less than this percentage, even if the repeats differ less.",
)
@click.option(
    "--trust-programs",
    is_flag=True,
    help="Start the run's programs even if they differ from those of its system here.",
)
@out_option
@click.option(
    "--resume",
    type=FOLDER,
    metavar="DIR",
    help="Resume an interrupted reproduction; the other options must be the same.",
)
def command(  # noqa: PLR0917 (click passes them by name)
    run_name: str,
    repeat: int | None,
    point: str | None,
    backend: str | None,
    within: float,
    trust_programs: bool,
    out: Path,
    resume: Path | None,
) -> int:
    """Repeat an archived run several times, and compare each of its claims with the results.

    The archive's plan is executed unchanged: topology, faults, parameters, workload and seed, whatever the
    experiments of this checkout contain. A claim holds if its figure, with its error bar and tolerance, could
    be the result of one more repeat. It differs otherwise, and is undecided if fewer than three repeats
    measured it. A run in virtual time must give exactly the same results, to the byte of its clients'
    delivery records. One line lists the differences of this machine and its versions. The repeats are kept as
    a sweep.

    Exit codes: 0 every claim holds, 1 one differs or is undecided, 2 no such run, it is damaged, or it has no
    claims, 3 this machine cannot do it, 130 interrupted.
    """
    from experiments.records.rundir import RunDirectory
    from testbed.campaign.backend_selection import check_backend
    from testbed.campaign.in_use import reading
    from testbed.campaign.reproduction.archived_run import read_archive, read_run
    from testbed.campaign.reproduction.reproducing import ReproductionRequest, reproduce
    from testbed.cli.named_run import named, named_sweep, packed

    if backend is not None:
        check_backend(backend)
    if (archive := packed(run_name)) is not None:
        archived = read_archive(archive, run_name, point, trust=trust_programs)
    else:
        found = named(run_name)
        name = found.path.name if isinstance(found, RunDirectory) else found.name
        with reading(found.path):
            archived = read_run(found, name, point, trust=trust_programs)
    going_on = None if resume is None else named_sweep(str(resume)).path
    given = {"--repeat": repeat, "--point": point, "--on": backend, "--within": f"{within:g}"}
    words = [word for option, value in given.items() if value is not None for word in (option, str(value))]
    wanted = ReproductionRequest.with_defaults(
        archived,
        backend=backend,
        repeat=repeat,
        within=within / 100,
        resume=going_on,
        given=[run_name, *words, *(["--trust-programs"] if trust_programs else [])],
    )
    with handling({signal.SIGTERM: interrupt}):
        return reproduce(wanted, out)
