"""Texts that start a night automatically: systemd units (systemd.service(5), systemd.timer(5)), or cron
lines.

Three units: a service that runs the night, a timer that starts it, and a service that, at boot, resumes a
night that a reboot interrupted. Returns texts only; writes no files.
"""

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

WAIT_H = 12
"""How many hours a night waits for the end of another that started at the same time."""
STOP_S = 180
"""How long a stopped night may take to end in order."""
SPARE_S = 3600
"""Time beyond the wait and the budget, for checking and pages, before systemd ends a hanging night."""


@dataclass(frozen=True, slots=True)
class NightSchedule:
    """A night that starts automatically.

    command: the words of `cutset nightly SUITE ...`, with absolute paths. folder: the working directory.
    path: PATH. user: the user of a system unit.
    """

    suite: str
    command: Sequence[str]
    folder: Path
    path: str
    hour: int
    minute: int
    budget_s: float
    user: str | None = None

    @property
    def name(self) -> str:
        """The name of its units, without their suffix."""
        return f"cutset-nightly-{self.suite}"

    @property
    def timer(self) -> str:
        """The unit to enable, which starts the night."""
        return f"{self.name}.timer"

    @property
    def resume(self) -> str:
        """The unit to enable, which resumes a night after a reboot."""
        return f"{self.name}-resume.service"


def units(night: NightSchedule) -> dict[str, str]:
    """Return the texts of all units, by file name."""
    return {
        f"{night.name}.service": _service(night, "the night", ()),
        night.timer: _timer(night),
        night.resume: _service(night, "the rest of a night", ("--resume",))
        + f"\n[Install]\nWantedBy={'multi-user' if night.user else 'default'}.target\n",
    }


def cron_lines(night: NightSchedule) -> str:
    """Return lines for crontab(5): one starts the night, one resumes it after a reboot."""
    line = (
        f"cd {shlex.quote(str(night.folder))} && PATH={shlex.quote(night.path)} {shlex.join(night.command)}"
    )
    line = line.replace("%", r"\%")
    return f"{night.minute} {night.hour} * * * {line}\n@reboot {line} --resume\n"


def _service(night: NightSchedule, what: str, more: Sequence[str]) -> str:
    user = f"User={night.user}\n" if night.user else ""
    return (
        "[Unit]\n"
        f"Description=Cutset: {what} of {night.suite}\n"
        "\n"
        "[Service]\n"
        "Type=oneshot\n"
        f"{user}"
        f"WorkingDirectory={_no_specifiers(str(night.folder))}\n"
        f"Environment={_quoted(f'PATH={night.path}')}\n"
        f"ExecStart={' '.join(map(_argument, (*night.command, *more)))}\n"
        f"TimeoutStartSec={WAIT_H * 3600 + night.budget_s + SPARE_S:.0f}\n"
        # SIGTERM goes to the command alone, which ends the run in order; remaining processes are killed.
        "KillMode=mixed\n"
        f"TimeoutStopSec={STOP_S}\n"
    )


def _timer(night: NightSchedule) -> str:
    return (
        "[Unit]\n"
        f"Description=Cutset: every night {night.suite}\n"
        "\n"
        "[Timer]\n"
        f"OnCalendar=*-*-* {night.hour:02}:{night.minute:02}:00\n"
        "Persistent=true\n"  # a night missed while the machine was off is run later
        f"Unit={night.name}.service\n"
        "\n"
        "[Install]\n"
        "WantedBy=timers.target\n"
    )


def _argument(word: str) -> str:
    """Quote a word of ExecStart, where `$` begins a variable."""
    return _quoted(word.replace("$", "$$"))


def _quoted(word: str) -> str:
    """Quote a word as systemd.syntax(7) parses it."""
    escaped = _no_specifiers(word).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"' if escaped == "" or any(char in escaped for char in " \t\n;'\"\\") else escaped


def _no_specifiers(text: str) -> str:
    """Escape `%`, which begins a specifier everywhere in units (systemd.unit(5))."""
    return text.replace("%", "%%")
