"""Faults on processes: end, halt, restart, replace, join and leave."""

from typing import Any, ClassVar

from pydantic import Field

from experiments.faults.fault import ExperimentFault, TriggeredFault


class ProcessFault(ExperimentFault):
    """A fault on a process, named like `r2/proxy-0`."""

    needs: ClassVar[tuple[str, ...]] = ()
    """Kinds of faults: one of them must come earlier on the same process."""
    may_end_process: ClassVar[bool] = False
    """Whether a program may end because of it, so that a restart may follow."""

    process: str

    @property
    def target(self) -> str:
        """`r2/proxy-0`."""
        return self.process

    @property
    def regions(self) -> tuple[str, ...]:
        """None: the process is checked instead."""
        return ()

    @property
    def struck(self) -> tuple[str, ...]:
        """The processes on which it acts directly."""
        return (self.process,)

    def details(self) -> dict[str, Any]:
        """Return the fields of its change (`ProcessChange`) besides time, names and action."""
        return {}


class Kill(TriggeredFault, ProcessFault):
    """Ends a process at once (SIGKILL)."""

    kind: ClassVar[str] = "kill"
    process: str = Field(alias="kill")
    """The process, such as r2/proxy-0."""


class Stop(TriggeredFault, ProcessFault):
    """Halts a process (SIGSTOP)."""

    kind: ClassVar[str] = "stop"
    process: str = Field(alias="stop")
    """The process, such as r2/proxy-0."""


class Continue(ProcessFault):
    """Resumes a stopped process (SIGCONT)."""

    kind: ClassVar[str] = "continue"
    mends: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("stop",)
    process: str = Field(alias="continue")
    """The process, such as r2/proxy-0."""


class Restart(ProcessFault):
    """Restarts a process that was killed or has left."""

    kind: ClassVar[str] = "restart"
    mends: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("kill", "leave")
    process: str = Field(alias="restart")
    """The process, such as r2/proxy-0."""


class Replace(Restart):
    """Restarts a process that was killed or has left on an empty disk: its stored data is lost."""

    kind: ClassVar[str] = "replace"
    process: str = Field(alias="replace")
    """The process, such as r2/proxy-0."""


class GiveUpFault(ProcessFault):
    """Announces to all processes, as an operator would, that a killed or departed process will not come back.
    A chain then continues without the data that only that process may have.
    """

    kind: ClassVar[str] = "give-up"
    mends: ClassVar[bool] = True
    needs: ClassVar[tuple[str, ...]] = ("kill", "leave")
    process: str = Field(alias="give-up")
    """The process, such as r2/proxy-0."""


class JoinFault(ProcessFault):
    """Starts a process that was absent at the start of the run."""

    kind: ClassVar[str] = "join"
    mends: ClassVar[bool] = True
    process: str = Field(alias="join")
    """The process, such as r0/client-3."""


class LeaveFault(TriggeredFault, ProcessFault):
    """Lets a process end in an orderly way, not as a failure."""

    kind: ClassVar[str] = "leave"
    process: str = Field(alias="leave")
    """The process, such as r0/client-1."""
