"""The configuration service of a region (paper 3.3): it decides which replicas form the chain.

Every replica of the region and every process that needs the chain keeps a connection with it. Configurations
are numbered from 1 on; every change is pushed to all connected processes, and each new connection receives
the present one. `membership` decides the members from the replicas' reports (STATUS). A replica whose
connection is lost or silent has `failure_grace` to return as the same process; meanwhile the others receive
the present configuration again and answer, so that it is known which of them continue without it.

The first configuration has all replicas in order of their index, or those that connect within a named wait. A
decision is written to the log on disk before it is sent, if the process has one. A restarted service without
a log adopts the newest configuration that a replica has received or stored. That is valid if all replicas
have reported and the members have their state; otherwise there may have been a later one, and the chain is
re-formed. Its numbers are then greater than those of all earlier process generations, because each of them
reserves `NUMBERS_A_LIFE`.

A chain is re-formed only when all replicas have connected, or the wait for them has ended: one of them may
have more.

A chain waits without limit for members that only they can replace, because no other replica has everything
that was committed. The operator ends this with GiveUp (`node.core.machine`): the chain is re-formed with the
state of the others.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from node.core import machine as m
from node.core.specification import NodeSpec
from node.protocols.sprinkler.chain.configurations import ReplicaChain, chain_of, configuration_of
from node.protocols.sprinkler.chain.participant import Participant
from node.protocols.sprinkler.messages import (
    Configuration,
    Joined,
    Refusal,
    Role,
    Standing,
    Status,
)
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.region.membership import (
    BEGAN_ANEW,
    Attendance,
    decide,
    has_all_states,
    re_formed,
)

FORM: m.Timer = ("form",)
GRACE = "grace"  # first word of a replica's timer
DECISIONS_MAX = 1_000  # that one input may cause
ANEW: m.Timer = ("anew",)
NUMBERS_A_LIFE = 16_384  # reserved for each earlier start of the process, if its configurations are unknown
LIVES_MAX = 255  # earlier starts for which numbers are reserved


class ConfigurationService(Participant):
    """The service of one region, one process; replicas and others dial it."""

    role = Role.CONFIGURATION

    def __init__(self, spec: NodeSpec, rng: m.Randomness) -> None:
        super().__init__(spec, rng)
        self.region = spec.region
        self.replicas: Sequence[str] = self.chains.replicas(spec.region)
        self.chain = ReplicaChain(0, 0)
        # numbers up to here belong to earlier starts
        self._used = NUMBERS_A_LIFE * min(spec.start, LIVES_MAX)
        self._waits_for_all = True  # before the first configuration
        self._anew_us: int | None = None  # end of the wait for others before the chain is re-formed
        self._keeps = spec.storage is not None
        self._segment = 0  # of the log
        self._appended = 0
        self._synced = 0
        self._sent_number = 0  # number of the last configuration that was sent
        self._remember: dict[str, Configuration] = {}  # the last configuration that each replica has received
        self._statuses: dict[str, Status] = {}  # the last status of each connected replica
        self._losses = 0  # of replicas that belonged to the chain
        # replicas that are away: the number of the loss, and the end of the wait
        self._lost: dict[str, tuple[int, int]] = {}
        self._heard: dict[str, int] = {}  # number of losses when each replica was last heard
        self._given_up: set[str] = set()  # by the operator
        self.takes = {
            (Role.PROXY, Joined): self._joined,
            (Role.PROXY, Configuration): self._remembered,
            (Role.PROXY, Status): self._receive_status,
        }

    # --- Hooks

    def restored(self, stored: Iterable[m.StoredSegment]) -> None:
        """Restore the last configuration on disk."""
        numbers = []
        for segment in stored:
            numbers.append(segment.number)
            for message in segment.messages:
                if isinstance(message, Configuration) and message.number > self.chain.number:
                    self.chain = chain_of(message, self.replicas)
        self._segment = max(numbers, default=0) + 1
        if self.chain.number and self._keeps:
            self._append()
            self.emit(m.Rewrite(tuple(numbers), ()))

    def started(self) -> None:
        """Listen; wait for the replicas, or for the members to return."""
        self.emit(m.Listen(self.parameters.port))
        self.emit(m.SetTimer(FORM, self.now_us + self.parameters.restore_wait_us))
        wait_us = self.parameters.connect_timeout_us + self.parameters.reconnect_last_us
        for name in self.chain.everyone:
            self._wait_for(name, wait_us)

    def opened(self, channel: SprinklerChannel) -> None:
        """Send the chain. A returned replica is no longer awaited; its status follows."""
        super().opened(channel)
        self._given_up.discard(channel.name)
        if self._is_meant(channel):
            self._lost.pop(channel.name, None)
        self._send_configuration(channel)

    def lost(self, channel: SprinklerChannel, reason: str) -> None:
        """Start the grace period of a lost replica of the chain, and check which members are present."""
        self._statuses.pop(channel.name, None)
        if self._is_meant(channel):
            self._wait_for(channel.name, self.parameters.failure_grace_us)
            for name in self.chain.members:
                if name in self.channels:
                    self._send_configuration(self.channels[name])

    def timer_fired(self, timer: m.Timer) -> None:
        """Handle the end of a replica's grace period, or of the wait for the first replicas."""
        if timer == FORM:
            self._waits_for_all = False
            self._form()
        self._decide_pending()

    def gave_up(self, given: m.GiveUp) -> None:
        """Handle the operator's decision that this process will not return."""
        if given.process in self.replicas and given.process not in self.channels:
            self.log("replica_given_up", "warning", region=self.region, replica=given.process)
            self._given_up.add(given.process)
            self._decide_pending()

    def settle(self) -> None:
        """Send a new configuration to all connected processes, once it is on disk."""
        if self.chain.number > self._sent_number and self._synced >= self._appended:
            self._sent_number = self.chain.number
            for channel in list(self.channels.values()):
                self._send_configuration(channel)

    def synced(self, appended: int) -> None:
        """Note how many decisions are on disk."""
        self._synced = max(self._synced, appended)

    def is_ready(self) -> bool:
        """Return whether a configuration has been sent."""
        return self._sent_number > 0

    # --- Messages of replicas

    def take(self, channel: SprinklerChannel, message: Any) -> None:
        """See `PeeringMachine`. Any message shows that the replica is alive after all earlier losses."""
        if channel.name in self.replicas:
            self._heard[channel.name] = self._losses
        super().take(channel, message)

    def _joined(self, channel: SprinklerChannel, message: Joined) -> None:
        """Make the joiner, which holds the tail's token, the new tail. Tokens of earlier configurations are
        void.
        """
        chain = self.chain
        if (
            message.configuration == chain.number
            and channel.name == chain.joining
            and self._is_meant(channel)
        ):
            self.log("replica_joined", region=self.region, replica=channel.name)
            members = (*chain.members, channel.name)
            self._decide(replace(chain, members=members, joining=None))
            self._decide_pending()

    def _receive_status(self, channel: SprinklerChannel, message: Status) -> None:
        """Store a replica's state and whether its disk works."""
        if channel.name in self.replicas:
            self._statuses[channel.name] = message
            self._form()
            self._decide_pending()

    def _remembered(self, channel: SprinklerChannel, message: Configuration) -> None:
        """Store the last configuration that a replica received, possibly from an earlier process of this
        service.
        """
        if channel.name not in self.replicas:
            self.refuse(channel, Refusal.UNEXPECTED, f"{channel.name} is no replica of {self.region}")
            return
        members = [replica for replica in message.replicas if replica.standing == Standing.MEMBER]
        known = all(replica.index < len(self.replicas) for replica in message.replicas)
        if message.number and not (members and known):
            self.refuse(
                channel, Refusal.UNEXPECTED, f"CONFIGURATION {message.number} is none of {self.region}"
            )
            return
        self._remember[channel.name] = message

    # --- Decisions

    def _decide_pending(self) -> None:
        """Make all pending decisions, one configuration after the other."""
        if not self.chain.number:
            return
        known = {name: self._attendance(name) for name in self.replicas}
        for _ in range(DECISIONS_MAX):
            decision = decide(self.chain, known)
            if decision is not None and decision.event == BEGAN_ANEW and self._is_too_early():
                return
            self._anew_us = None
            if decision is None:
                return
            self.log(decision.event, decision.level, region=self.region, **decision.fields)
            self._decide(decision.chain)

    def _attendance(self, name: str) -> Attendance:
        channel = self.channels.get(name)
        lost, until_us = self._lost.get(name, (0, self.now_us + 1))
        return Attendance(
            incarnation=None if channel is None else channel.incarnation,
            status=self._statuses.get(name),
            heard=self._heard.get(name, 0),
            lost=lost,
            is_overdue=self.now_us >= until_us,
            is_given_up=name in self._given_up,
        )

    def _form(self) -> None:
        """Decide the first configuration from the replicas' reports."""
        present = [name for name in self.replicas if name in self._statuses and name in self._remember]
        if self.chain.number or not present or (self._waits_for_all and len(present) < len(self.replicas)):
            return
        newest = max([self._remember[name] for name in present], key=lambda each: each.number)
        if newest.number:
            self._continue_from(newest)
            return
        incarnations = tuple([self.channels[name].incarnation for name in present])
        self._decide(ReplicaChain(self._used, self._used + 1, tuple(present), None, incarnations))

    def _continue_from(self, newest: Configuration) -> None:
        """Adopt the newest known configuration, if no replica can have continued in a later one."""
        known = {name: self._attendance(name) for name in self.replicas}
        chain = replace(chain_of(newest, self.replicas), number=max(newest.number, self._used))
        decision = None if has_all_states(chain, known) else re_formed(chain, known)
        if decision is None and not has_all_states(chain, known):
            return  # until a replica connects that may begin
        self.log("configuration_remembered", "warning", region=self.region, number=newest.number)
        if decision is not None:
            self.log(decision.event, decision.level, region=self.region, **decision.fields)
        self._decide(chain if decision is None else decision.chain)

    def _is_too_early(self) -> bool:
        """Return whether to wait for replicas that may have more, before the chain is re-formed."""
        away = [name for name in self.replicas if name not in self._statuses and name not in self._given_up]
        if away and self._anew_us is None:
            self._anew_us = self.now_us + self.parameters.restore_wait_us
            self.emit(m.SetTimer(ANEW, self._anew_us))
        return bool(away) and self._anew_us is not None and self.now_us < self._anew_us

    def _decide(self, chain: ReplicaChain) -> None:
        """Make this the next configuration."""
        assert chain.number >= self.chain.number, "a configuration number used twice"
        assert len(set(chain.everyone)) == len(chain.incarnations), (
            "a repeated replica, or an unknown process"
        )
        self.chain = replace(chain, number=chain.number + 1)
        fields = {"number": self.chain.number, "chain": list(chain.members), "joining": chain.joining}
        self.log("configuration_changed", region=self.region, **fields)
        self._append()

    def _append(self) -> None:
        if self._keeps:
            self._appended += 1
            self.emit(m.Append(self._segment, (configuration_of(self.chain, self.replicas),)))

    # --- Its own parts

    def _send_configuration(self, channel: SprinklerChannel) -> None:
        """Send the last decision that is on disk. A later one is sent by `settle`."""
        if self.chain.number and self._sent_number == self.chain.number:
            self.send(channel, configuration_of(self.chain, self.replicas))

    def _wait_for(self, name: str, wait_us: int) -> None:
        self._losses += 1
        self._lost[name] = (self._losses, self.now_us + wait_us)
        self.emit(m.SetTimer((GRACE, name), self.now_us + wait_us))

    def _is_meant(self, channel: SprinklerChannel) -> bool:
        return self.chain.has(channel.name, channel.incarnation)
