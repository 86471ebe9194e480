"""After any sequence of decisions the invariants hold, and a replay gives the same image."""

from collections.abc import Callable
from datetime import timedelta
from functools import reduce
from typing import Any
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st
from kio.schema.alter_partition.v3.request import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)
from kio.schema.alter_partition_reassignments.v1.request import (
    AlterPartitionReassignmentsRequest,
    ReassignablePartition,
    ReassignableTopic,
)
from kio.schema.broker_registration.v4.request import (
    BrokerRegistrationRequest,
    Feature,
    Listener,
)
from kio.schema.create_partitions.v3.request import (
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from kio.schema.create_topics.v7.request import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from kio.schema.delete_topics.v6.request import DeleteTopicsRequest, DeleteTopicState
from kio.schema.elect_leaders.v2.request import ElectLeadersRequest
from kio.schema.incremental_alter_configs.v1.request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kio.schema.unregister_broker.v0.request import UnregisterBrokerRequest
from tests.unit.controller.support import CLUSTER_ID, SETTINGS, CountingDice, directory

from tidelog.controller.decide import elections
from tidelog.controller.decide.decide import DecideContext, decide
from tidelog.controller.features import SUPPORTED_FEATURES, activation_records
from tidelog.controller.image.apply import apply, apply_all
from tidelog.controller.image.difference import diff
from tidelog.controller.image.image import ClusterImage, PartitionImage
from tidelog.controller.liveness import Liveness
from tidelog.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from tidelog.protocol.metadata.codec import decode_record, encode_record
from tidelog.protocol.metadata.metadata_records import MetadataRecord

BROKERS = range(1, 5)
TIMEOUT = timedelta(seconds=1)

Step = Callable[["World"], None]


class World:
    """A controller that decides, and checks the invariants after each decision."""

    def __init__(self) -> None:
        self.dice = CountingDice()
        self.image = ClusterImage(cluster_id=CLUSTER_ID)
        self.runs = 0
        self.clean_epochs: dict[int, int] = {}
        self.commit(activation_records(self.image, SETTINGS))
        for id_ in BROKERS:
            self.register(id_, clean=False)
            self.beat(id_)

    def context(self) -> DecideContext:
        return DecideContext(0, self.dice, SETTINGS, self.image.offset + 1, Liveness(9000))

    def ask(self, request: Any) -> Any:
        decision = decide(self.image, request, self.context())
        self.commit(decision.records)
        return decision.response

    def commit(self, records: tuple[MetadataRecord, ...]) -> None:
        records = tuple(decode_record(encode_record(record)) for record in records)
        old = self.image
        offset = old.offset + len(records)
        self.image = apply_all(old, records, offset, 1)
        folded = reduce(apply, records, old)
        assert (folded.topics, folded.brokers, folded.configs, folded.features) == (
            self.image.topics,
            self.image.brokers,
            self.image.configs,
            self.image.features,
        )
        check_transition(old, self.image)

    # -- possible events ---------------------------------------------------------------------------

    def register(self, id_: int, *, clean: bool) -> None:
        self.runs += 1
        before = self.image.brokers.get(id_)
        epoch = before.epoch if clean and before is not None else -1
        self.ask(
            BrokerRegistrationRequest(
                broker_id=id_,
                cluster_id=CLUSTER_ID,
                incarnation_id=UUID(int=self.runs),
                listeners=(Listener(name="P", host="h", port=1, security_protocol=0),),
                features=tuple(
                    Feature(
                        name=name,
                        min_supported_version=supported.minimum,
                        max_supported_version=supported.maximum,
                    )
                    for name, supported in SUPPORTED_FEATURES.items()
                ),
                rack=f"r{id_ % 2}",
                log_dirs=(directory(id_),),
                previous_broker_epoch=epoch,
            )
        )

    def beat(self, id_: int, *, fence: bool = False, stop: bool = False) -> None:
        broker = self.image.brokers.get(id_)
        self.ask(
            BrokerHeartbeatRequest(
                broker_id=id_,
                broker_epoch=-1 if broker is None else broker.epoch,
                current_metadata_offset=self.image.offset,
                want_fence=fence,
                want_shut_down=stop,
            )
        )

    def expire(self, id_: int) -> None:
        self.commit(tuple(elections.fence_expired(self.image, [id_], self.context())))


# -- The checked invariants ------------------------------------------------------------------------


def check_transition(old: ClusterImage, new: ClusterImage) -> None:
    check_image(new)
    found = diff(old, new)
    listed = {change.partition: change for change in found.partitions}
    for name, topic in new.topics.items():
        before = old.topics.get(name)
        for index, partition in topic.partitions.items():
            earlier = (
                before.partitions.get(index)
                if before is not None and before.topic_id == topic.topic_id
                else None
            )
            changed = (name, index) in {tuple(key) for key in listed}
            assert changed == (earlier != partition)
            if earlier is not None:
                check_partition_transition(earlier, partition)
    for id_, broker in new.brokers.items():
        former = old.brokers.get(id_)
        assert former is None or broker.epoch >= former.epoch


def check_partition_transition(old: PartitionImage, new: PartitionImage) -> None:
    assert new.partition_epoch >= old.partition_epoch
    assert new.leader_epoch >= old.leader_epoch
    if new != old:
        assert new.partition_epoch > old.partition_epoch
    if new.leader != old.leader:
        assert new.leader_epoch > old.leader_epoch
    safe = {*old.isr, *old.elr}
    if new.has_leader and new.leader not in safe and new.leader != old.leader:
        assert new.leader_recovery_state == 1, "an election that may lose records says so"


def check_image(image: ClusterImage) -> None:
    assert {topic.topic_id: name for name, topic in image.topics.items()} == image.topic_names
    for topic in image.topics.values():
        assert sorted(topic.partitions) == list(range(len(topic.partitions)))
        for partition in topic.partitions.values():
            check_partition(image, partition)


def check_partition(image: ClusterImage, partition: PartitionImage) -> None:
    replicas = set(partition.replicas)
    assert len(replicas) == len(partition.replicas) == len(partition.directories)
    assert len(set(partition.isr)) == len(partition.isr)
    assert set(partition.isr) <= replicas
    assert not set(partition.elr) & set(partition.isr)
    assert set(partition.adding) <= replicas
    assert set(partition.removing) <= replicas
    assert partition.leader == -1 or partition.leader in partition.isr
    for member in partition.isr:
        assert image.is_active(member), "nobody in sync is fenced or stopping"
    if partition.isr:
        assert partition.has_leader, "someone in sync can lead"


# -- Random sequences of events --------------------------------------------------------------------

NAMES = st.sampled_from(["a", "b", "c.d", "c_d", "e"])
IDS = st.sampled_from(list(BROKERS))


def _create(name: str, count: int, factor: int, minimum: int, unclean: bool) -> Step:
    configs = {
        "min.insync.replicas": str(minimum),
        "unclean.leader.election.enable": str(unclean).lower(),
    }
    return lambda world: world.ask(
        CreateTopicsRequest(
            topics=(
                CreatableTopic(
                    name=name,
                    num_partitions=count,
                    replication_factor=factor,
                    assignments=(),
                    configs=tuple(
                        CreatableTopicConfig(name=key, value=value)
                        for key, value in configs.items()
                    ),
                ),
            ),
            timeout=TIMEOUT,
        )
    )


def _delete(name: str) -> Step:
    return lambda world: world.ask(
        DeleteTopicsRequest(topics=(DeleteTopicState(name=name, topic_id=None),), timeout=TIMEOUT)
    )


def _grow(name: str, count: int) -> Step:
    return lambda world: world.ask(
        CreatePartitionsRequest(
            topics=(CreatePartitionsTopic(name=name, count=count, assignments=None),),
            timeout=TIMEOUT,
            validate_only=False,
        )
    )


def _minimum(name: str, minimum: int) -> Step:
    return lambda world: world.ask(
        IncrementalAlterConfigsRequest(
            resources=(
                AlterConfigsResource(
                    resource_type=2,
                    resource_name=name,
                    configs=(
                        AlterableConfig(
                            name="min.insync.replicas", config_operation=0, value=str(minimum)
                        ),
                    ),
                ),
            ),
            validate_only=False,
        )
    )


def _alter_isr(name: str, isr: list[int]) -> Step:
    """The leader of the topic's first partition asks for this in-sync set."""

    def step(world: World) -> None:
        topic = world.image.topics.get(name)
        if topic is None or not topic.partitions[0].has_leader:
            return
        partition = topic.partitions[0]
        members = dict.fromkeys([partition.leader, *isr])
        world.ask(
            AlterPartitionRequest(
                broker_id=partition.leader,
                broker_epoch=world.image.brokers[partition.leader].epoch,
                topics=(
                    TopicData(
                        topic_id=topic.topic_id,
                        partitions=(
                            PartitionData(
                                partition_index=0,
                                leader_epoch=partition.leader_epoch,
                                new_isr_with_epochs=tuple(
                                    BrokerState(broker_id=id_, broker_epoch=-1) for id_ in members
                                ),
                                partition_epoch=partition.partition_epoch,
                            ),
                        ),
                    ),
                ),
            )
        )

    return step


def _reassign(name: str, replicas: list[int] | None) -> Step:
    return lambda world: world.ask(
        AlterPartitionReassignmentsRequest(
            timeout=TIMEOUT,
            topics=(
                ReassignableTopic(
                    name=name,
                    partitions=(
                        ReassignablePartition(
                            partition_index=0,
                            replicas=None if replicas is None else tuple(replicas),
                        ),
                    ),
                ),
            ),
        )
    )


def _elect(kind: int) -> Step:
    return lambda world: world.ask(
        ElectLeadersRequest(election_type=kind, topic_partitions=None, timeout=TIMEOUT)
    )


def _register(id_: int, clean: bool) -> Step:
    return lambda world: world.register(id_, clean=clean)


def _beat(id_: int, fence: bool, stop: bool) -> Step:
    return lambda world: world.beat(id_, fence=fence, stop=stop)


def _expire(id_: int) -> Step:
    return lambda world: world.expire(id_)


def _unregister(id_: int) -> Step:
    return lambda world: world.ask(UnregisterBrokerRequest(broker_id=id_))


SOME = st.lists(IDS, min_size=1, max_size=4, unique=True)
STEPS = st.one_of(
    st.builds(
        _create, NAMES, st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.booleans()
    ),
    st.builds(_delete, NAMES),
    st.builds(_grow, NAMES, st.integers(1, 6)),
    st.builds(_minimum, NAMES, st.integers(1, 3)),
    st.builds(_alter_isr, NAMES, st.lists(IDS, max_size=4)),
    st.builds(_reassign, NAMES, st.none() | SOME),
    st.builds(_elect, st.sampled_from([0, 1])),
    st.builds(_register, IDS, st.booleans()),
    st.builds(_beat, IDS, st.booleans(), st.booleans()),
    st.builds(_beat, IDS, st.just(False), st.just(False)),
    st.builds(_expire, IDS),
    st.builds(_unregister, IDS),
)


@given(st.lists(STEPS, max_size=40))
def test_any_sequence_of_decisions_keeps_the_invariants(steps: list[Step]) -> None:
    world = World()
    for step in steps:
        step(world)


@given(st.lists(STEPS, max_size=25))
def test_once_every_broker_is_back_no_eligible_partition_waits_for_a_leader(
    steps: list[Step],
) -> None:
    world = World()
    for step in steps:
        step(world)
    for id_ in BROKERS:
        if id_ not in world.image.brokers or not world.image.is_active(id_):
            world.register(id_, clean=True)
            world.beat(id_)
    for topic in world.image.topics.values():
        for partition in topic.partitions.values():
            if partition.elr:
                assert partition.has_leader
