"""The start of a program: limits, user and privileges of the forked child, on the machine or in an image."""

import os
import pwd
import resource
import signal
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from node.core.program import Program
from node.programs.image_view import ImageView
from node.tcp.child import PR_SET_PDEATHSIG, enter_control_groups
from node.tcp.libc import libc
from node.tcp.privileges import OF_PROGRAMS, drop_capabilities, limit_bounding_set

PROBLEM_BYTES_MAX = 4096


def child_setup(program: Program) -> Callable[[], None]:
    """Return the function that prepares the forked child. Raises KeyError for an unknown user."""
    user = pwd.getpwnam(program.user) if program.user and os.geteuid() == 0 else None

    def become_it() -> None:
        _set_limits(program)
        if user is not None:
            os.initgroups(user.pw_name, user.pw_gid)
            os.setgid(user.pw_gid)
            os.setuid(user.pw_uid)
        _give_up_privileges()

    return become_it


def child_setup_in_image(
    program: Program, run: Sequence[str], env: Mapping[str, str], view: ImageView, enter: Callable[[], None]
) -> Callable[[], None]:
    """Return the function by which the forked child becomes a program in an image, or a command beside it.

    enter: takes the child into the view. Raises OSError, LookupError, SubprocessError in the child.
    """

    def become_it() -> None:
        enter()
        _set_limits(program)
        view.start(run, env, program.user, _give_up_privileges)

    return become_it


def _set_limits(program: Program) -> None:
    """Set limits, and the stop signal's default action; none of it survives in the minder."""
    limits, own = program.limits, signal.Signals[f"SIG{program.stop.signal}"]
    if own != signal.SIGKILL:
        signal.signal(own, signal.SIG_DFL)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if limits.memory_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (limits.memory_bytes, limits.memory_bytes))
    if limits.processors is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: limits.processors])
    limit_bounding_set(OF_PROGRAMS)


def _give_up_privileges() -> None:
    drop_capabilities(OF_PROGRAMS)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def start_program(
    run: Sequence[str], setup: Callable[[], None], control_groups: Iterable[str], **given: Any
) -> subprocess.Popen[bytes]:
    """Start a program after `setup` in the forked child. Raises OSError, also with the error of `setup`."""
    reading, writing = os.pipe()

    def set_up() -> None:
        try:
            enter_control_groups(control_groups)
            setup()
        except (OSError, LookupError, subprocess.SubprocessError) as error:
            os.write(writing, str(error).encode()[:PROBLEM_BYTES_MAX])
            raise

    try:
        return subprocess.Popen(
            run,
            preexec_fn=set_up,  # noqa: PLW1509 - this process has one thread
            **given,
        )
    except subprocess.SubprocessError:
        os.set_blocking(reading, False)
        raise OSError(os.read(reading, PROBLEM_BYTES_MAX).decode(errors="replace")) from None
    finally:
        os.close(reading)
        os.close(writing)
