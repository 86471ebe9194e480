"""Before a query continues from a checkpoint, checks that the checkpoint belongs to the job."""

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.sinks.group_offsets import GroupOffsets
from tidelog_pipelines.sinks.identities import Identities
from tidelog_pipelines.sources.checkpoint import Checkpoint, spans_between
from tidelog_pipelines.sources.kafka import Subscription


def resume(
    checkpoint: Checkpoint,
    subscription: Subscription,
    identities: Identities,
    offsets: GroupOffsets | None,
) -> str | None:
    """Check that the checkpoint belongs to this job, and commit offsets that a killed run left.

    Returns the reason if the offsets could not be committed, and otherwise None.
    """
    if checkpoint.last_committed() is None:
        return None
    ends = checkpoint.committed_ends()
    foreign = [topic for topic in ends if not subscription.covers(topic)]
    if foreign or not ends:
        of = f"one that reads {', '.join(foreign)}" if foreign else "one that reads no topics"
        raise JobFailed(
            f"the checkpoint {checkpoint.path} belongs to another query, {of}; give this one a "
            "separate --out or --checkpoint."
        )
    if spans_between(checkpoint.first_starts(), ends) and not identities.are_known():
        raise JobFailed(
            f"the checkpoint {checkpoint.path} has read records, and its tables are of another "
            "--format, or were removed: give the earlier --format, or another --out."
        )
    identities.check(list(ends))
    return offsets.commit(ends) if offsets else None
