"""What a quorum leader knows about its replicas: the end offset and last fetch of each."""

from collections.abc import Mapping

from tidelog.model.ids import Millis, NodeId, Offset
from tidelog.replication.quorum.events import ReplicaFetched
from tidelog.replication.quorum.roles import Leader, ReplicaProgress
from tidelog.replication.quorum.state import ReplicaKey, VoterSet


def first_progress(voters: VoterSet) -> dict[ReplicaKey, ReplicaProgress]:
    return {voters.voters[voter].key: ReplicaProgress() for voter in voters}


def record_fetch(
    role: Leader, voters: VoterSet, event: ReplicaFetched, log_end: Offset, now: Millis
) -> None:
    """Record a fetch, which proves that the replica has fsynced all records below its offset."""
    key = event.replica
    if key in voters:
        key = voters.voters[key.id].key
        role.unacknowledged.discard(key.id)
        if event.replica.directory is not None:
            role.directories[key.id] = event.replica.directory
    progress = role.progress.setdefault(key, ReplicaProgress())
    if event.offset >= log_end:
        progress.last_caught_up = now
    elif event.offset >= progress.last_fetch_leader_end >= 0:
        progress.last_caught_up = max(progress.last_caught_up, progress.last_fetch)
    progress.end = event.offset
    progress.last_fetch = now
    progress.last_fetch_leader_end = log_end


def voter_ends(
    role: Leader, voters: VoterSet, me: NodeId, my_end: Offset
) -> Mapping[NodeId, Offset]:
    """The end offset of each voter, as proven by its fetches in this epoch."""
    return {
        id: my_end if id == me else role.progress[voter.key].end
        for id, voter in voters.voters.items()
    }


def change_voters(role: Leader, voters: VoterSet, me: NodeId) -> None:
    """Apply new voters; an added voter keeps the progress that it made as an observer."""
    for id, voter in voters.voters.items():
        if voter.key not in role.progress:
            known = next((p for key, p in role.progress.items() if key.is_same(voter.key)), None)
            role.progress[voter.key] = known if known is not None else ReplicaProgress()
            if id != me:
                role.unacknowledged.add(id)
    role.unacknowledged &= set(voters)


def has_lost_majority(
    role: Leader, voters: VoterSet, me: NodeId, now: Millis, patience: Millis
) -> bool:
    """Whether too few voters have fetched recently. If enough have, the next check is postponed."""
    if now < role.check_quorum_deadline:
        return False
    fetch_times = sorted(
        (now if id == me else role.progress[voter.key].last_fetch)
        for id, voter in voters.voters.items()
    )
    # A majority of the voters has fetched at or after this time.
    since = fetch_times[len(fetch_times) - voters.majority]
    if me not in voters.voters:
        since = fetch_times[max(0, len(fetch_times) - voters.majority)]
    if now - since >= patience:
        return True
    role.check_quorum_deadline = since + patience
    return False


def next_deadline(role: Leader, voters: VoterSet, me: NodeId) -> Millis | None:
    if len(voters) == 1 and me in voters.voters:
        return None
    if role.unacknowledged:
        return min(role.announce_deadline, role.check_quorum_deadline)
    return role.check_quorum_deadline


def successors(role: Leader, voters: VoterSet, me: NodeId) -> tuple[NodeId, ...]:
    """The other voters in the order in which they should stand for election.

    Voters with a more complete log come first.
    """
    return tuple(
        sorted(voters.others(me), key=lambda id: (-role.progress[voters.voters[id].key].end, id))
    )
