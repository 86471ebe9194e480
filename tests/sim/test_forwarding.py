"""A node forwards a client's change to the active controller, and answers after applying it."""

from kio.schema.describe_quorum.v2.request import DescribeQuorumRequest, PartitionData, TopicData
from tests.sim.messages import create_topic
from tests.sim.talk import Talk, running

from tidelog.model.errors import ErrorCode
from tidelog.model.events import Event, FrameReceived
from tidelog.model.ids import METADATA_TOPIC, Millis
from tidelog.model.outbound import Outbound
from tidelog.node.node import Node
from tidelog.protocol.messages.messages import decode_request_header

CREATE_TOPICS, DESCRIBE_QUORUM, ENVELOPE = 19, 55, 58
DESCRIBE = DescribeQuorumRequest(
    topics=(TopicData(topic_name=METADATA_TOPIC, partitions=(PartitionData(partition_index=0),)),)
)


def test_a_node_that_answers_a_change_knows_of_it(seed: int) -> None:
    cluster = running(seed)
    for number in range(10):
        for node in (1, 2, 3):
            name = f"topic-{number}-{node}"
            answer = Talk(cluster, node).ask(create_topic(name, 3, 3))
            assert answer.topics[0].error_code is ErrorCode.none
            assert name in cluster.hosts[node].node.image.topics


def test_a_forwarded_change_takes_one_request(seed: int) -> None:
    cluster = running(seed)
    (leader,) = [id for id, host in cluster.hosts.items() if host.node.is_active_controller]
    client = Talk(cluster, next(id for id in cluster.hosts if id != leader))
    asked: list[int] = []
    host = cluster.hosts[leader]
    usual = host.handle

    def handle(node: Node, event: Event, now: Millis) -> list[Outbound]:
        if isinstance(event, FrameReceived) and event.conn > 0:
            asked.append(decode_request_header(event.frame).api_key)
        return usual(node, event, now)

    host.handle = handle
    answer = client.ask(create_topic("orders", 3, 3))
    assert answer.topics[0].error_code is ErrorCode.none
    assert asked.count(ENVELOPE) == 1
    assert CREATE_TOPICS not in asked
    assert DESCRIBE_QUORUM not in asked


def test_any_node_describes_the_quorum_as_its_leader_sees_it(seed: int) -> None:
    cluster = running(seed)
    (leader,) = [id for id, host in cluster.hosts.items() if host.node.is_active_controller]
    for node in (1, 2, 3):
        answer = Talk(cluster, node).ask(DESCRIBE)
        described = answer.topics[0].partitions[0]
        assert described.error_code is ErrorCode.none
        assert described.leader_id == leader
        assert described.observers == ()
        states = {state.replica_id: state for state in described.current_voters}
        assert sorted(states) == [1, 2, 3]
        assert described.high_watermark <= states[leader].log_end_offset
        assert max(state.log_end_offset for state in states.values()) == (
            states[leader].log_end_offset
        )
