"""Mininet's prompt with additional commands.

All commands of Mininet's own prompt for hosts work here (`r0-client-0 ping r3-proxy-0`, `nodes`), except
those that would change links without the run's knowledge: they are refused, and the answer names the command
to use instead. The runner applies and records faults; the prompt only sends requests. An invalid line gets a
line with the error, and the prompt continues.

`RunnerClient` is the prompt's side of its channel to the runner: one request, one answer.
"""

import contextlib
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FrameType
from typing import Any, NoReturn, TextIO

from mininet.cli import CLI
from mininet.log import output
from mininet.net import Mininet
from mininet.node import Node

from experiments.faults.kinds import KINDS
from experiments.planned.plan import Plan
from testbed.errors import TestbedError
from testbed.interrupts import handling
from testbed.sandbox.channel import SandboxChannel
from testbed.shell import fault_commands

ANSWER_TIMEOUT_S = 60.0
"""A process that is restarted may take forty seconds (`testbed.runner.running`) on a busy machine."""


class RequestRefusedError(TestbedError):
    """The runner's refusal of a request, with the reason."""


class RunnerClient:
    """The prompt's connection to the runner."""

    def __init__(self, channel: SandboxChannel) -> None:
        self._channel = channel
        self._unanswered = 0  # interrupted requests whose answers are still to come

    def opening(self) -> dict[str, Any]:
        """Return the runner's first message."""
        return self._receive()

    def ask(self, do: str, **fields: Any) -> dict[str, Any]:
        """Send a request and return the answer.

        Raises RequestRefusedError, and TestbedError if the runner has ended.
        """
        self._channel.post({"do": do, **fields})
        self._unanswered += 1
        while self._unanswered > 1:
            self._receive()
            self._unanswered -= 1
        answer = self._receive()
        self._unanswered = 0
        if answer["did"] == "refused":
            raise RequestRefusedError(answer["text"])
        return answer

    def fault(self, document: Mapping[str, Any]) -> dict[str, Any]:
        """Inject a fault now."""
        return self.ask("fault", fault=dict(document))

    def _receive(self) -> dict[str, Any]:
        message = self._channel.receive(ANSWER_TIMEOUT_S)
        if message is None:
            raise TestbedError("the run has ended" if self._channel.ended else "the runner does not answer")
        return message


PROMPT = "cutset> "
OURS = (*KINDS, "status", "faults")
MININETS = ("nodes", "net", "links", "intfs", "dump", "pingall", "sh", "py", "px", "source", "time", "noecho")
REFUSED = {
    "link": "this change would not be in the run's record: use cut, restore or set",
    "switch": "regions have bridges, not switches to start and stop: use isolate and restore",
    "dpctl": "there are no OpenFlow switches here",
    **dict.fromkeys(
        ("iperf", "iperfudp"), "its load is not part of the experiment; run any program as HOST COMMAND"
    ),
}


class ShellPrompt(CLI):  # type: ignore[misc]
    """Reads lines until the user leaves. Its constructor reads none; `talk` does."""

    prompt = PROMPT
    identchars = CLI.identchars + "-"
    doc_header = "Mininet's commands:"

    def __init__(self, net: Mininet, plan: Plan, runner: RunnerClient, stdin: TextIO) -> None:
        self._plan = plan
        self._runner = runner
        self._processes = {process.host: process.name for process in plan.processes}
        self._names: dict[str, list[str]] = {
            "regions": [region.name for region in plan.regions],
            "links": [link.name for link in plan.links if link.kind == "wan"],
            "processes": list(self._processes.values()),
            "faults": [],
        }
        self._shown = {"changes": 0, "problems": 0}
        self._talking = False
        super().__init__(net, stdin=stdin)

    def talk(self) -> None:
        """Read and execute lines until the user leaves."""
        self._talking = True
        if not self.isatty():
            self.prompt = ""
        self.say("the network is up and its nodes run; `help` lists the commands, Ctrl-D leaves")
        super().run()

    def run(self) -> None:
        """Do nothing when Mininet's constructor calls this; see `talk`."""
        if self._talking:
            super().run()

    @classmethod
    def initReadline(cls) -> None:  # noqa: N802
        """Complete names with "-" and "/" as one word. The history ends with the prompt."""
        with contextlib.suppress(ImportError):
            import readline  # noqa: PLC0415

            readline.set_completer_delims(" \t\n|")

    def say(self, line: str) -> None:
        """Print a line."""
        self.stdout.write(f"{line}\n")
        self.stdout.flush()

    # Execution of lines.

    def precmd(self, line: str) -> str:
        """Echo the line, unless it was typed on a terminal."""
        if not self.isatty() and line != "EOF":
            self.say(f"{PROMPT}{line}")
        return str(super().precmd(line)).strip()

    def onecmd(self, line: str) -> Any:
        """Execute a line; true leaves the prompt."""
        word, given, _ = self.parseline(line)
        try:
            if word in KINDS:
                return self._fault(word, given)
            return super().onecmd(line)
        except (fault_commands.CommandError, TestbedError) as error:
            self.say(f"*** {error}")
        except Exception as error:  # noqa: BLE001 - a failing command must not end the network
            self.say(f"*** {word} failed: {type(error).__name__}: {' '.join(str(error).split())}")
        return False

    def postcmd(self, stop: bool, line: str) -> bool:
        """Print changes and problems that happened during the command."""
        if not stop:
            with contextlib.suppress(TestbedError):  # the run is about to end and reports the reason
                news = self._runner.ask("news", **self._shown)
                self._shown = {key: count + len(news[key]) for key, count in self._shown.items()}
                for each in fault_commands.news_lines(news):
                    self.say(each)
        return bool(super().postcmd(stop, line))

    def default(self, line: str) -> None:
        """Run a command on a host, as in Mininet; report any other line as unknown."""
        word = self.parseline(line)[0]
        if word in self.mn:
            super().default(line)
        else:
            known = [*OURS, *MININETS, *(host.name for host in self._plan.hosts)]
            self.say(f"*** unknown: {line.split(maxsplit=1)[0]}{_nearest(line.split(maxsplit=1)[0], known)}")

    def waitForNode(self, node: Node) -> None:  # noqa: N802
        """Wait for a host's command.

        It receives what is typed meanwhile, but not the next lines of a script.
        """
        if self.isatty():
            super().waitForNode(node)
            return
        while node.waiting:
            try:
                output(node.monitor())
            except KeyboardInterrupt:
                node.sendInt()

    def _fault(self, word: str, given: str) -> None:
        for document in fault_commands.fault_documents(word, given, self._processes):
            answer = self._runner.fault(document)
            self._names["faults"].append(answer["name"])
            for line in fault_commands.fault_lines(answer):
                self.say(line)

    def do_status(self, _line: str) -> None:
        """Print the time, deviations from the configuration, and events per second at each client."""
        streams = {str(stream.number): stream.name for stream in self._plan.streams}
        for line in fault_commands.status_lines(self._runner.ask("status"), streams):
            self.say(line)

    def do_faults(self, _line: str) -> None:
        """Print the faults so far, in the form of an experiment's file."""
        faults = self._runner.ask("faults")["faults"]
        for fault in faults:
            self.say(f"  - {{{', '.join(f'{key}: {_flow(value)}' for key, value in fault.items())}}}")
        if not faults:
            self.say("none so far")

    def do_help(self, line: str) -> None:
        """Print the available commands."""
        if line in KINDS:
            self.say(f"{fault_commands.usage(line)}\n    {fault_commands.meaning(line)}")
        elif line in fault_commands.OTHER_WORDS:
            self.say("\n    ".join(fault_commands.OTHER_WORDS[line]))
        elif line:
            super().do_help(line)
        else:
            for each in fault_commands.help_lines():
                self.say(each)
            self.say(f"Mininet's: {', '.join(MININETS)}; HOST COMMAND, such as r0-client-0 ping r1-proxy-0")

    def do_xterm(self, line: str, term: str = "xterm") -> None:
        """Spawn xterms, if there is a display."""
        if "DISPLAY" not in os.environ:
            raise TestbedError(f"{term} needs a display: run commands on hosts here instead")
        super().do_xterm(line, term)

    # Completion with Tab.

    def completenames(self, given: str, *_: Any) -> list[str]:
        """Complete the first word: our commands, Mininet's, hosts."""
        known = [*OURS, *MININETS, "help", "exit", "quit", *(host.name for host in self._plan.hosts)]
        return _matching(known, given)

    def completedefault(self, given: str, line: str, begin: int, _end: int) -> list[str]:
        """Complete later words: arguments of our commands, names of hosts for any other."""
        word, *before = line[:begin].split() or [""]
        if word in KINDS:
            known = fault_commands.candidates(word, before, self._names)
        elif word == "help":
            known = list(OURS)
        else:
            known = [host.name for host in self._plan.hosts]
        return _matching(known, given)

    complete_help = completedefault


def _matching(known: Sequence[str], given: str) -> list[str]:
    """Return the matches, each with a space after it, because Python's readline adds none."""
    return sorted({f"{name} " for name in known if name.startswith(given)})


def _refuse(word: str, why: str) -> Callable[[ShellPrompt, str], None]:
    def refuse(self: ShellPrompt, _line: str) -> None:
        self.say(f"*** {word}: {why}")

    refuse.__doc__ = why
    return refuse


for _word, _why in REFUSED.items():
    setattr(ShellPrompt, f"do_{_word}", _refuse(_word, _why))


def _flow(value: Any) -> str:
    """Return a value in YAML's flow style."""
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) else json.dumps(value)


def _nearest(word: str, known: Sequence[str]) -> str:
    import difflib  # noqa: PLC0415 (only for a typing error)

    near = difflib.get_close_matches(word, known, n=1)
    return f": did you mean {near[0]}?" if near else "; `help` lists the commands"


@contextlib.contextmanager
def ended_by_signals() -> Iterator[None]:
    """Leave the prompt in order on SIGTERM, so that the terminal is restored."""

    def leave(_number: int, _frame: FrameType | None) -> NoReturn:
        sys.exit(0)

    with handling({signal.SIGTERM: leave}):
        yield
