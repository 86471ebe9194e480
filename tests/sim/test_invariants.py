"""Each invariant on a hand-made scene: the states that it accepts, and those that it rejects."""

from collections import Counter
from uuid import UUID

import pytest

from tidelog.controller.image.image import BrokerImage, ClusterImage, PartitionImage, TopicImage
from tidelog.model.ids import NodeId, TopicPartition
from tidelog.replication.quorum.roles import Candidate, Follower, Leader, Prospective, Role
from tidelog.sim.checks.scene import Copy, Scene, Stance, Violation
from tidelog.sim.checks.shadow import Batch, ShadowLog
from tidelog.sim.clients.history import ClientWrite, History
from tidelog.sim.invariants.acknowledged_kept import AcknowledgedKept
from tidelog.sim.invariants.counted_is_held import CountedIsHeld
from tidelog.sim.invariants.fit_to_join import FitToJoin
from tidelog.sim.invariants.idempotent_once import IdempotentOnce
from tidelog.sim.invariants.leader_completeness import LeaderCompleteness
from tidelog.sim.invariants.left_for_lag import LeftForLag
from tidelog.sim.invariants.log_matching import LogMatching
from tidelog.sim.invariants.metadata_matches import MetadataMatches
from tidelog.sim.invariants.one_leader_per_epoch import OneLeaderPerEpoch
from tidelog.sim.invariants.pre_vote_before_epoch import PreVoteBeforeEpoch
from tidelog.sim.invariants.quorum_superset import QuorumSuperset
from tidelog.sim.invariants.reads_stay import ReadsStay
from tidelog.sim.invariants.watermark_monotonic import WatermarkMonotonic

ORDERS = TopicPartition("orders", 0)
TOPIC_ID = UUID(int=7)


def batch(base: int, epoch: int = 0, crc: int | None = None, *, sequence: int = -1) -> Batch:
    """A batch of one record; if a sequence is given, the producer is idempotent."""
    producer = -1 if sequence < 0 else 5
    return Batch(base, base, epoch, base if crc is None else crc, producer, 0, sequence)


def scene_of(*logs: list[Batch], beyond: bool = False) -> tuple[Scene, list[Copy]]:
    """A scene in which nodes 1, 2, ... hold these logs."""
    scene = Scene(History(), beyond)
    ledger = scene.ledger(ORDERS, TOPIC_ID)
    copies = []
    for node, held in enumerate(logs, 1):
        copy = Copy(node, 1, ledger, ShadowLog(), end=len(held))
        copy.log.extend(held)
        scene.copies[node] = {ORDERS: copy}
        scene.broker_epochs[node] = 40 + node
        copies.append(copy)
    return scene, copies


def image_of(isr: tuple[NodeId, ...], *, leader: NodeId = 1, epoch: int = 0, offset: int = 9):
    placed = PartitionImage((1, 2, 3), isr, leader, epoch, epoch)
    brokers = {
        node: BrokerImage(node, 40 + node, UUID(int=node), {}, fenced=False) for node in (1, 2, 3)
    }
    return ClusterImage(
        topics={"orders": TopicImage("orders", TOPIC_ID, {0: placed})},
        topic_names={TOPIC_ID: "orders"},
        brokers=brokers,
        offset=offset,
    )


def commit(scene: Scene, copy: Copy, end: int) -> None:
    before, copy.high_watermark, copy.epoch = copy.high_watermark, end, max(copy.epoch, 0)
    LeaderCompleteness(scene).watermark_moved(copy, before)


def test_one_offset_of_one_epoch_holds_one_batch() -> None:
    one, other = [batch(0), batch(1)], [batch(0), batch(1, crc=99)]
    scene, copies = scene_of(one, other)
    matching = LogMatching(scene)
    matching.appended(copies[0], one)
    matching.appended(copies[0], [batch(2, epoch=1)])
    with pytest.raises(Violation, match="two different batches"):
        matching.appended(copies[1], other)


def test_logs_that_share_a_batch_share_the_one_before_it() -> None:
    one, other = [batch(0), batch(1, epoch=1)], [batch(0, epoch=1, crc=8), batch(1, epoch=1)]
    scene, copies = scene_of(one, other)
    matching = LogMatching(scene)
    matching.appended(copies[0], one)
    with pytest.raises(Violation, match="before offset 1"):
        matching.appended(copies[1], other)


def test_nobody_leads_twice_in_an_epoch() -> None:
    scene, [first, second] = scene_of([], [])
    rule = OneLeaderPerEpoch(scene)
    first.epoch = second.epoch = 4
    rule.led(first)
    rule.led(first)
    with pytest.raises(Violation, match="node 2 leads in epoch 4 after node 1"):
        rule.led(second)
    first.run = 2
    with pytest.raises(Violation, match="again"):
        rule.led(first)


def test_a_leader_holds_what_was_committed() -> None:
    scene, [first, second] = scene_of([batch(0), batch(1)], [batch(0)])
    commit(scene, first, 2)
    second.epoch = 1
    with pytest.raises(Violation, match="without offsets 1 to 1"):
        LeaderCompleteness(scene).led(second)
    second.log.extend([batch(1)])
    LeaderCompleteness(scene).led(second)


def test_who_learns_late_that_it_was_elected_may_lack_what_later_leaders_committed() -> None:
    scene, (first, second) = scene_of([batch(0), batch(1)], [batch(0)])
    first.epoch = 2
    commit(scene, first, 1)
    first.epoch = 4
    commit(scene, first, 2)
    second.epoch = 3
    LeaderCompleteness(scene).led(second)

    second.epoch = 5
    with pytest.raises(Violation, match="without offsets 1 to 1"):
        LeaderCompleteness(scene).led(second)


def test_beyond_the_budget_an_unclean_leader_may_lack_some_but_no_other() -> None:
    scene, [first, second] = scene_of([batch(0), batch(1)], [batch(0)], beyond=True)
    commit(scene, first, 2)
    second.epoch = 1
    with pytest.raises(Violation):
        LeaderCompleteness(scene).led(second)
    second.ledger.unclean_epochs.add(1)
    LeaderCompleteness(scene).led(second)
    assert second.ledger.lost == 1
    assert second.ledger.committed_end == 1


def test_two_leaders_do_not_commit_different_things() -> None:
    scene, [first, second] = scene_of([batch(0), batch(1)], [batch(0), batch(1, epoch=1)])
    commit(scene, first, 2)
    with pytest.raises(Violation, match="committed different records"):
        commit(scene, second, 2)


def test_a_watermark_does_not_move_back() -> None:
    scene, [copy] = scene_of([batch(0), batch(1)])
    copy.high_watermark = 2
    WatermarkMonotonic(scene).watermark_moved(copy, 1)
    with pytest.raises(Violation, match="from 3 to 2"):
        WatermarkMonotonic(scene).watermark_moved(copy, 3)


def test_the_controllers_in_sync_set_is_not_larger_than_the_leaders() -> None:
    scene, [leader, _, _] = scene_of([], [], [])
    leader.epoch, leader.maximal_isr = 0, frozenset({1, 2})
    scene.image = image_of((1, 2))
    QuorumSuperset(scene).image_changed(1, scene.image)
    scene.image = image_of((1, 2, 3))
    with pytest.raises(Violation, match=r"\[3\] as in sync in epoch 0"):
        QuorumSuperset(scene).image_changed(1, scene.image)


def test_a_member_of_the_in_sync_set_holds_what_is_committed() -> None:
    scene, [leader, _] = scene_of([batch(0), batch(1)], [batch(0)])
    commit(scene, leader, 2)
    scene.image = image_of((2,), leader=2, epoch=1)
    with pytest.raises(Violation, match="node 2 is in sync in epoch 1 and lacks offset 1"):
        QuorumSuperset(scene).image_changed(1, scene.image)
    scene.broker_epochs[2] = 99  # node 2 has restarted, but the image does not show it yet
    QuorumSuperset(scene).image_changed(1, scene.image)


def test_a_leader_counts_on_nothing_that_a_follower_does_not_hold() -> None:
    scene, [leader, _] = scene_of([batch(0), batch(1)], [batch(0)])
    scene.image = image_of((1, 2))
    leader.epoch, leader.runs = 0, {2: 42}
    leader.ends = {1: 2, 2: 1}
    CountedIsHeld(scene).followers_counted(leader)
    leader.ends = {1: 2, 2: 2}
    with pytest.raises(Violation, match="counts node 2 as holding all records below 2"):
        CountedIsHeld(scene).followers_counted(leader)
    leader.runs = {2: 17}  # an earlier process of node 2 fetched, and held the records
    CountedIsHeld(scene).followers_counted(leader)


def test_a_fenced_broker_does_not_join_the_in_sync_set() -> None:
    scene, _ = scene_of([])
    rule = FitToJoin(scene)
    rule.image_changed(1, image_of((1, 2), offset=1))
    image = image_of((1, 2, 3), offset=2)
    fenced = BrokerImage(3, 43, UUID(int=3), {}, fenced=True)
    image.brokers[3] = fenced
    with pytest.raises(Violation, match=r"\[3\] joined"):
        rule.image_changed(1, image)


def test_who_had_everything_within_the_lag_time_stays_in_sync() -> None:
    scene, [leader, _, _] = scene_of([], [], [])
    leader.level_at = {2: 7_000, 3: 4_999}
    LeftForLag(scene).shrinking(leader, {3}, since=5_000)
    with pytest.raises(Violation, match="drops node 2"):
        LeftForLag(scene).shrinking(leader, {2, 3}, since=5_000)


def stance(node: NodeId, role: type[Role], epoch: int, *, is_content: bool = False) -> Stance:
    return Stance(node, 1, epoch, role, is_content, (1, 2, 3))


def quorum_led_by_1() -> PreVoteBeforeEpoch:
    rule = PreVoteBeforeEpoch(scene_of([])[0])
    rule.stance_changed(stance(1, Leader, 1, is_content=True), 0)
    for follower in (2, 3):
        rule.stance_changed(stance(follower, Follower, 1, is_content=True), 0)
    return rule


def test_a_voter_alone_does_not_open_an_epoch() -> None:
    rule = quorum_led_by_1()
    rule.stance_changed(stance(3, Prospective, 1), 2_000)
    with pytest.raises(Violation, match=r"node 3 starts epoch 2 although \[1, 2\] have contact"):
        rule.stance_changed(stance(3, Candidate, 2), 2_500)


def test_a_voter_who_was_without_a_leader_may_have_agreed_to_a_new_epoch() -> None:
    rule = quorum_led_by_1()
    rule.stance_changed(stance(3, Prospective, 1), 2_000)
    rule.stance_changed(stance(2, Prospective, 1), 2_100)
    rule.stance_changed(stance(2, Follower, 1, is_content=True), 2_200)
    rule.stance_changed(stance(3, Candidate, 2), 2_500)


def test_what_a_voter_said_before_it_was_asked_does_not_count() -> None:
    rule = quorum_led_by_1()
    rule.stance_changed(stance(2, Prospective, 1), 1_000)
    rule.stance_changed(stance(2, Follower, 1, is_content=True), 1_200)
    rule.stance_changed(stance(3, Prospective, 1), 2_000)
    with pytest.raises(Violation):
        rule.stance_changed(stance(3, Candidate, 2), 2_500)


def test_two_images_at_one_offset_are_equal() -> None:
    scene, _ = scene_of([])
    rule = MetadataMatches(scene)
    rule.image_changed(1, image_of((1, 2)))
    rule.image_changed(2, image_of((1, 2)))
    with pytest.raises(Violation, match="nodes 1 and 3 differ"):
        rule.image_changed(3, image_of((1,)))


@pytest.mark.parametrize(
    ("sequences", "what"), [((0, 1, 1), "twice"), ((0, 2), "after a gap"), ((1,), "after a gap")]
)
def test_an_idempotent_producer_is_written_once_and_in_order(
    sequences: tuple[int, ...], what: str
) -> None:
    held = [batch(place, sequence=sequence) for place, sequence in enumerate(sequences)]
    scene, [copy] = scene_of(held)
    with pytest.raises(Violation, match=what):
        IdempotentOnce(scene).appended(copy, held)


def test_an_acknowledged_write_is_committed_as_it_was_sent() -> None:
    scene, [copy] = scene_of([batch(0), batch(1)])
    rule = AcknowledgedKept(scene)
    commit(scene, copy, 1)
    rule.acknowledged(ClientWrite("p", ORDERS, 0, 1, 0, -1, 0, 0))
    rule.acknowledged(ClientWrite("p", ORDERS, 1, 1, 1, 1, 0, 0))  # this is valid with acks=1
    with pytest.raises(Violation, match="before it was committed"):
        rule.acknowledged(ClientWrite("p", ORDERS, 1, 1, 1, -1, 0, 0))
    with pytest.raises(Violation, match="holds another batch"):
        rule.acknowledged(ClientWrite("p", ORDERS, 0, 1, 77, -1, 0, 0))


def test_a_consumer_is_given_only_what_is_committed() -> None:
    scene, [copy] = scene_of([batch(0), batch(1)])
    commit(scene, copy, 1)
    ReadsStay(scene).read(ORDERS, [batch(0)])
    with pytest.raises(Violation, match="offset 1 of epoch 0 was read"):
        ReadsStay(scene).read(ORDERS, [batch(0), batch(1)])


def test_every_invariant_has_a_name_of_its_own() -> None:
    from tidelog.sim.invariants import ALL

    assert max(Counter(one.name for one in ALL).values()) == 1
