"""ListPartitionReassignments: the reassignments in progress."""

from uuid import UUID

from kio.schema.list_partition_reassignments.v0.request import ListPartitionReassignmentsTopics
from tests.unit.api.support import ask, image, partition, request, topic

from tidelog.api.admin import reassignments

MOVING = partition(replicas=(1, 2, 3), adding=(3,), removing=(1,))
TWO = image(topic("a", UUID(int=1), partition(), MOVING), topic("b", UUID(int=2), partition()))


def listed(topics):
    message = ask(46, topics=topics)
    response = reassignments.list_partition_reassignments(request(message, 0, image=TWO))
    return [
        (found.name, p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas)
        for found in response.topics
        for p in found.partitions
    ]


def asked(name: str, *indexes: int) -> ListPartitionReassignmentsTopics:
    return ListPartitionReassignmentsTopics(name=name, partition_indexes=indexes)


def test_everything_that_moves():
    assert listed(None) == [("a", 1, (1, 2, 3), (3,), (1,))]


def test_what_was_asked_for_and_moves():
    assert listed((asked("a", 0, 1, 9), asked("b", 0), asked("nope", 0))) == [
        ("a", 1, (1, 2, 3), (3,), (1,))
    ]
    assert listed((asked("a", 0),)) == []
