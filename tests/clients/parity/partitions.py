"""CreatePartitions and DescribeTopicPartitions."""

from typing import Any

from tests.clients.parity import case
from tests.clients.talk import Talk

# -- CreatePartitions ------------------------------------------------------------------------------


def grow(t: Talk, *topics: tuple[str, int, list[list[int]] | None], **fields: Any) -> None:
    wanted = [
        {
            "name": name,
            "count": count,
            "assignments": None if brokers is None else [{"brokerIds": each} for each in brokers],
        }
        for name, count, brokers in topics
    ]
    t.ask({"topics": wanted, "timeoutMs": 30000, **fields})


@case("CreatePartitions")
def grows(t: Talk) -> None:
    topic = t.topic()
    grow(t, (topic.name, 3, None))
    t.settled(topic.name, 3)
    t.ask_other("Metadata", None, {"topics": [{"name": topic.name}]})


@case("CreatePartitions")
def does_not_shrink(t: Talk) -> None:
    topic = t.topic(partitions=3)
    for count in (3, 2, 0, -1):
        grow(t, (topic.name, count, None))


@case("CreatePartitions")
def grow_unknown(t: Talk) -> None:
    grow(t, ("nowhere", 3, None))
    grow(t, ("", 3, None))


@case("CreatePartitions")
def grow_with_assignments(t: Talk) -> None:
    topic = t.topic()
    grow(t, (topic.name, 3, [[1]]))
    grow(t, (topic.name, 2, [[9]]))
    grow(t, (topic.name, 2, [[]]))
    grow(t, (topic.name, 2, [[1, 1]]))
    grow(t, (topic.name, 3, [[1], [1, 2]]))
    grow(t, (topic.name, 3, [[1], [1]]))


@case("CreatePartitions")
def grow_validate_only(t: Talk) -> None:
    topic = t.topic()
    grow(t, (topic.name, 3, None), validateOnly=True)
    grow(t, (topic.name, 1, None), validateOnly=True)
    t.ask_other("Metadata", None, {"topics": [{"name": topic.name}]})


@case("CreatePartitions")
def grow_twice_in_one(t: Talk) -> None:
    topic = t.topic()
    grow(t, (topic.name, 2, None), (topic.name, 3, None))


@case("CreatePartitions")
def grow_nothing(t: Talk) -> None:
    grow(t)


# -- DescribeTopicPartitions -----------------------------------------------------------------------


def describing(*names: str, limit: int = 2000, cursor: Any = None) -> dict[str, Any]:
    topics = [{"name": name} for name in names]
    return {"topics": topics, "responsePartitionLimit": limit, "cursor": cursor}


@case("DescribeTopicPartitions")
def describes(t: Talk) -> None:
    one, two = t.topic(partitions=3), t.topic()
    t.ask(describing(one.name, two.name))
    t.ask(describing(two.name, one.name))
    t.ask(describing(one.name, one.name))


@case("DescribeTopicPartitions")
def describe_unknown(t: Talk) -> None:
    t.ask(describing("nowhere"))
    t.ask(describing("", "../../etc"))


@case("DescribeTopicPartitions")
def describe_page_by_page(t: Talk) -> None:
    topic = t.topic(partitions=5)
    cursor = None
    for _ in range(3):
        cursor = t.ask(describing(topic.name, limit=2, cursor=cursor))["nextCursor"]
    t.ask(describing(topic.name, cursor={"topicName": topic.name, "partitionIndex": -1}))
    t.ask(describing(topic.name, cursor={"topicName": topic.name, "partitionIndex": 9}))
    t.ask(describing(topic.name, cursor={"topicName": "zzz", "partitionIndex": 0}))
    t.ask(describing(topic.name, limit=0))
