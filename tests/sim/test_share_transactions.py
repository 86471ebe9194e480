"""A share group with read_committed gets the records of committed transactions, without delay."""

from tests.sim.share_member import ShareMember, from_the_start, offsets_of
from tests.sim.transactional_client import (
    TransactionalProducer,
    await_stable,
    transactional_cluster,
)


def test_a_fetch_reads_on_after_records_of_aborted_transactions(seed: int) -> None:
    cluster = transactional_cluster(seed)
    from_the_start(cluster, **{"share.isolation.level": "read_committed"})
    for name, commits in (("a", False), ("b", True)):
        producer = TransactionalProducer(cluster, name)
        producer.init()
        producer.send(0, b"x", b"y")
        producer.end(commits=commits)
    await_stable(cluster)
    member = ShareMember(cluster, topic="t").join()
    assert not member.fetch(most=0)  # loads the state

    began = cluster.world.now
    got = offsets_of(member.fetched(most=1))

    assert got == [2], "the records 0 and 1 were aborted, and 2 is their marker"
    assert cluster.world.now - began < 500, "the fetch waited although there were records"
    assert offsets_of(member.fetched(most=1)) == [3, 4]
