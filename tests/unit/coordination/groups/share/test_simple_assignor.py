"""The assignor `simple`: every partition and every member has its share."""

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from tidelog.coordination.groups.share.simple_assignor import SharePartitionId, assign

TOPIC = UUID(int=1)


def partitions(count: int) -> frozenset[SharePartitionId]:
    return frozenset((TOPIC, index) for index in range(count))


@given(st.integers(1, 12), st.integers(1, 12), st.integers(1, 12))
def test_partitions_and_members_are_covered_evenly(
    members: int, others: int, partition_count: int
) -> None:
    available = partitions(partition_count)
    before = assign({f"m{number}": available for number in range(others)}, {})

    found = assign({f"m{number}": available for number in range(members)}, before)

    assert frozenset().union(*found.values()) == available
    sizes = [len(target) for target in found.values()]
    assert min(sizes) >= 1
    share = max(1, -(-members // partition_count))
    assert max(sizes) <= max(1, -(-partition_count * share // members)) + 1


@given(st.integers(1, 8), st.integers(1, 8))
def test_an_unchanged_group_keeps_its_assignment(members: int, partition_count: int) -> None:
    subscriptions = {f"m{number}": partitions(partition_count) for number in range(members)}
    before = assign(subscriptions, {})

    assert assign(subscriptions, before) == before


def test_members_get_only_what_they_subscribe_to() -> None:
    other = frozenset({(UUID(int=2), 0)})

    assert assign({"a": partitions(2), "b": other, "c": frozenset()}, {}) == {
        "a": partitions(2),
        "b": other,
        "c": frozenset(),
    }


def test_a_group_without_members_has_no_assignment() -> None:
    assert assign({}, {}) == {}
