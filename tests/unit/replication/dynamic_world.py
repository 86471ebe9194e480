"""A simulated quorum with dynamic voters, which are records in the log (KIP-853)."""

from tests.unit.replication.quorum_member import Member, VotersRecord
from tests.unit.replication.quorum_world import QuorumWorld

from tidelog.model.ids import NodeId
from tidelog.replication.quorum import voters as rules
from tidelog.replication.quorum.roles import Leader
from tidelog.replication.quorum.state import Voter, VoterSet


class DynamicWorld(QuorumWorld):
    def add_voter(self, id: NodeId) -> rules.VoterChangeRefused | None:
        """Ask the leader to add this member as a voter; return the reason if it refuses."""
        leader, role, refused = self._leader_for_a_change()
        if refused is not None:
            return refused
        voter = Voter(self.members[id].key)
        patience = self.timeouts.fetch_ms
        return self._change(
            leader, rules.add(leader.machine.voters, voter, role.progress, self.now, patience)
        )

    def remove_voter(self, id: NodeId) -> rules.VoterChangeRefused | None:
        leader, _, refused = self._leader_for_a_change()
        if refused is not None:
            return refused
        voters = leader.machine.voters
        key = voters.voters[id].key if id in voters.voters else self.members[id].key
        return self._change(leader, rules.remove(voters, key))

    def _leader_for_a_change(self) -> tuple[Member, Leader, rules.VoterChangeRefused | None]:
        leader = self.leader
        assert leader is not None
        role = leader.machine.role
        return leader, role, rules.refuse_any(role, rules.DYNAMIC, leader.machine.voters_offset)

    def _change(
        self, leader: Member, outcome: VoterSet | rules.VoterChangeRefused
    ) -> rules.VoterChangeRefused | None:
        if isinstance(outcome, rules.VoterChangeRefused):
            return outcome
        leader.log.append(VotersRecord.of(leader.machine.epoch, outcome))
        self._log_changed(leader)
        return None
