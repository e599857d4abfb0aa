"""The configuration service of a region (paper 3.3): it says which replicas form the chain.

Every replica of the region keeps a connection with it, and so does everyone else who needs the chain. Its
configurations are numbered from 1 on, and every change is pushed to all who are connected; who connects is
told the present one. A replica whose connection is lost, or falls silent, is removed, unless it is back
within `failure_grace` as the same process. The last member is never removed, since it alone has everything;
if it comes back as a new process the chain begins anew with what that one has or gets back from others.
Replicas that are connected and do not belong to the chain join it behind the tail, one at a time: when the
tail has passed its token, the joiner says so, and becomes the tail.

The first configuration has all replicas in order of their index, or those that have come within a named
wait. What is decided goes to the log on disk before it is told, if the process has one. A service that comes
back without it takes the newest configuration that one of those replicas was told.
"""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from node.core import machine as m
from node.core.specification import NodeSpec
from node.protocols.sprinkler.channel import Channel
from node.protocols.sprinkler.configurations import Chain, Chains, chain_of, configuration_of
from node.protocols.sprinkler.messages import Advertisement, Configuration, Joined, Refusal, Role, Standing
from node.protocols.sprinkler.parameters import Parameters
from node.protocols.sprinkler.participant import Participant

FORM: m.Timer = ("form",)
GRACE = "grace"  # first word of a replica's timer


class ConfigurationService(Participant):
    """The service of one region. One process; replicas and others dial it."""

    role = Role.CONFIGURATION

    def __init__(self, spec: NodeSpec, rng: m.Randomness) -> None:
        parameters = Parameters(**spec.parameters)
        super().__init__(spec.name, parameters, rng, [])
        self.region = spec.region
        self.replicas: Sequence[str] = Chains(spec, parameters).replicas(spec.region)
        self.chain = Chain(0, 0)
        self._keeps = spec.storage is not None
        self._segment = 0  # of the log
        self._appended = 0
        self._synced = 0
        self._told = 0  # number of the configuration that was told last
        self._remember: dict[str, Configuration] = {}  # what replicas were told last
        self._absent: dict[str, None] = {}  # members that are not connected, while their grace lasts
        self.takes = {
            **{(role, Advertisement): self._heartbeat for role in Role},
            (Role.PROXY, Joined): self._joined,
            (Role.PROXY, Configuration): self._remembered,
        }

    # --- Hooks

    def restored(self, stored: Iterable[m.StoredSegment]) -> None:
        """Go on from the last configuration that is on disk."""
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
        """Listen; wait for the replicas, or for the members to come back."""
        self.emit(m.Listen(self.parameters.port))
        self.emit(m.SetTimer(FORM, self.now_us + self.parameters.restore_wait_us))
        wait_us = self.parameters.connect_timeout_us + self.parameters.reconnect_last_us
        for name in self.chain.everyone:
            self._wait_for(name, wait_us)

    def opened(self, channel: Channel) -> None:
        """Tell it the chain; a replica may have come back, or be new."""
        if channel.role is Role.PROXY and channel.name in self.replicas:
            self._consider()
        self._tell(channel)

    def lost(self, channel: Channel, reason: str) -> None:
        """A replica that belongs to the chain has a little while to come back."""
        if self.chain.has(channel.name, channel.incarnation):
            self._wait_for(channel.name, self.parameters.failure_grace_us)

    def timer_fired(self, timer: m.Timer) -> None:
        """A replica's grace is over, or the wait for the first replicas."""
        if timer == FORM:
            self._form(all_or_none=False)
        elif timer[0] == GRACE and timer[1] in self._absent:
            del self._absent[timer[1]]
            if not self._is_present(timer[1]):
                self._remove(timer[1], "not connected")

    def settle(self) -> None:
        """Tell everyone what is new, once it is on disk."""
        if self.chain.number > self._told and self._synced >= self._appended:
            self._told = self.chain.number
            for channel in list(self.channels.values()):
                self._tell(channel)

    def synced(self, appended: int) -> None:
        """So much of what was decided is on disk."""
        self._synced = max(self._synced, appended)

    def is_ready(self) -> bool:
        """There is a chain."""
        return self._told > 0

    # --- What replicas say

    def _heartbeat(self, channel: Channel, message: Advertisement) -> None:
        """Whoever is connected is alive; what it has does not matter here."""

    def _joined(self, channel: Channel, message: Joined) -> None:
        """The joiner has the tail's token: it is the tail from now on. Tokens of the past are void."""
        chain = self.chain
        if (
            message.configuration == chain.number
            and channel.name == chain.joining
            and self._is_meant(channel)
        ):
            self.log("replica_joined", region=self.region, replica=channel.name)
            members = (*chain.members, channel.name)
            self._decide(replace(chain, members=members, joining=None))
            self._consider()

    def _remembered(self, channel: Channel, message: Configuration) -> None:
        """What a replica was told last, by us in an earlier life, if anything."""
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
        if self.chain.number:
            self._adopt()
        else:
            self._form(all_or_none=True)

    def _adopt(self) -> bool:
        """Go on from the newest configuration that a replica knows, if it is newer than ours."""
        newest = max(self._remember.values(), key=lambda told: told.number)
        if newest.number <= self.chain.number:
            return False
        self.log("configuration_remembered", "warning", region=self.region, number=newest.number)
        self.chain = chain_of(newest, self.replicas)
        for name in self.chain.everyone:
            self._wait_for(name, self.parameters.connect_timeout_us)
        self._decide(self.chain)
        self._consider()
        return True

    # --- Decisions

    def _consider(self) -> None:
        """After a replica has come: it may be back, new, or the one that was awaited."""
        for name in self.chain.everyone:
            channel = self.channels.get(name)
            if channel is None:
                continue
            if self._absent.pop(name, 0) is None:
                self.emit(m.CancelTimer((GRACE, name)))
            if not self._is_meant(channel):
                self._came_back_new(channel)
        self._let_join()

    def _came_back_new(self, channel: Channel) -> None:
        """The process that was meant has died; another one has its name."""
        chain = self.chain
        if chain.members != (channel.name,):
            self._remove(channel.name, "started again")
            return
        self.log("chain_began_anew", "warning", region=self.region, replica=channel.name)
        incarnations = (channel.incarnation, *chain.incarnations[1:])
        self._decide(replace(chain, incarnations=incarnations, began=chain.number + 1))

    def _form(self, *, all_or_none: bool) -> None:
        """The first configuration."""
        present = [name for name in self.replicas if name in self.channels and name in self._remember]
        if self.chain.number or not present or (all_or_none and len(present) < len(self.replicas)):
            return
        if self._adopt():
            return
        incarnations = tuple(self.channels[name].incarnation for name in present)
        self._decide(Chain(0, 1, tuple(present), None, incarnations))

    def _remove(self, name: str, why: str) -> None:
        """Without this replica, unless it is the last member."""
        chain = self.chain
        if name not in chain.everyone or chain.members == (name,):
            return
        self.log("replica_removed", "warning", region=self.region, replica=name, why=why)
        at = chain.everyone.index(name)
        incarnations = chain.incarnations[:at] + chain.incarnations[at + 1 :]
        members = tuple(member for member in chain.members if member != name)
        joining = chain.joining if chain.joining != name else None
        self._decide(replace(chain, members=members, joining=joining, incarnations=incarnations))
        self._let_join()

    def _let_join(self) -> None:
        """The first replica that is connected and does not belong to the chain joins it."""
        chain = self.chain
        if not chain.number or chain.joining is not None:
            return
        strangers = [name for name in self.channels if name in self.replicas and name not in chain.everyone]
        if strangers:
            incarnations = (*chain.incarnations, self.channels[strangers[0]].incarnation)
            self._decide(replace(chain, joining=strangers[0], incarnations=incarnations))

    def _decide(self, chain: Chain) -> None:
        """This is the next configuration."""
        self.chain = replace(chain, number=self.chain.number + 1)
        fields = {"number": self.chain.number, "chain": list(chain.members), "joining": chain.joining}
        self.log("configuration_changed", region=self.region, **fields)
        self._append()

    def _append(self) -> None:
        if self._keeps:
            self._appended += 1
            self.emit(m.Append(self._segment, (configuration_of(self.chain, self.replicas),)))

    # --- Its own parts

    def _tell(self, channel: Channel) -> None:
        """What was decided and is on disk. A later one follows from `settle`."""
        if self.chain.number and self._told == self.chain.number:
            self.send(channel, configuration_of(self.chain, self.replicas))

    def _wait_for(self, name: str, wait_us: int) -> None:
        self._absent[name] = None
        self.emit(m.SetTimer((GRACE, name), self.now_us + wait_us))

    def _is_meant(self, channel: Channel) -> bool:
        return self.chain.has(channel.name, channel.incarnation)

    def _is_present(self, name: str) -> bool:
        channel = self.channels.get(name)
        return channel is not None and self._is_meant(channel)
