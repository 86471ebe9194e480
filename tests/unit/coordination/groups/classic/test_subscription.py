import pytest
from tests.unit.coordination.group_client import subscription

from tidelog.coordination.groups.classic.subscription import subscribed_topics


@pytest.mark.parametrize("topics", [(), ("a",), ("a", "b\u00fc")])
def test_topics_of_a_subscription(topics: tuple[str, ...]) -> None:
    assert subscribed_topics(subscription(*topics)) == frozenset(topics)


def test_later_versions_begin_alike() -> None:
    owned_partitions_and_more = b"\0\0\0\0\xff\xff\xff\xff\0\0"
    version_3 = b"\0\3" + subscription("a")[2:] + owned_partitions_and_more
    assert subscribed_topics(version_3) == {"a"}


@pytest.mark.parametrize(
    "metadata",
    [
        b"",
        b"\0\0",
        b"\xff\xff\0\0\0\0\xff\xff\xff\xff",
        b"\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
        b"\0\0\0\0\0\1\0\5ab",
        b"\0\0\0\0\0\1\xff\xffab\0\0\0\0",
        b"\0\0\x7f\xff\xff\xff",
        b"\0\0\0\0\0\1\0\1\xff\0\0\0\0",
        subscription("a")[:-4] + b"\0\0\0\5x",
    ],
    ids=[
        "nothing",
        "no count",
        "negative version",
        "negative count",
        "topic too long",
        "negative length",
        "many topics",
        "not UTF-8",
        "user data too long",
    ],
)
def test_what_is_no_subscription(metadata: bytes) -> None:
    assert subscribed_topics(metadata) is None
