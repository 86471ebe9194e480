"""The placement of new replicas on brokers and racks."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st
from tests.unit.controller.support import CountingDice, broker, cluster, directory

from tidelog.controller.decide.decision import Refusal
from tidelog.controller.decide.placement import default_directory, place
from tidelog.controller.image.image import (
    MIGRATING_DIRECTORY,
    UNASSIGNED_DIRECTORY,
    BrokerImage,
    ClusterImage,
)


class FixedDice(CountingDice):
    def __init__(self, *numbers: int) -> None:
        super().__init__()
        self._numbers = list(numbers)

    def below(self, bound: int) -> int:
        return self._numbers.pop(0) % bound


def placed(
    image: ClusterImage, count: int, factor: int, dice: CountingDice | None = None
) -> list[tuple[int, ...]]:
    found = place(image, dice or CountingDice(), 0, count, factor)
    assert not isinstance(found, Refusal)
    return found


def _racked(*racks: str | None) -> list[BrokerImage]:
    return [broker(number, rack=rack) for number, rack in enumerate(racks, 1)]


def test_leaders_and_replicas_are_spread_evenly() -> None:
    found = placed(cluster(5), 50, 3)

    leads = Counter(replicas[0] for replicas in found)
    holds = Counter(replica for replicas in found for replica in replicas)
    assert set(leads.values()) == {10}
    assert max(holds.values()) - min(holds.values()) <= 3
    assert all(len(set(replicas)) == 3 for replicas in found)


def test_the_followers_of_one_leader_are_not_always_the_same() -> None:
    found = placed(cluster(6), 60, 2)

    assert {replicas[1] for replicas in found if replicas[0] == 1} == {2, 3, 4, 5, 6}


def test_replicas_go_to_different_racks_while_there_are_any() -> None:
    image = cluster(_racked("a", "a", "b", "b", "c", "c"))
    for replicas in placed(image, 60, 3):
        assert {image.brokers[one].rack for one in replicas} == {"a", "b", "c"}
    for replicas in placed(image, 60, 4):
        assert {image.brokers[one].rack for one in replicas} == {"a", "b", "c"}


def test_leaders_are_even_though_racks_are_not() -> None:
    leads = Counter(replicas[0] for replicas in placed(cluster(_racked("a", "b", "b", "b")), 40, 2))

    assert set(leads.values()) == {10}


def test_a_fenced_broker_holds_replicas_only_if_it_must_and_never_leads() -> None:
    image = cluster([broker(1), broker(2), broker(3, fenced=True)])

    assert {frozenset(replicas) for replicas in placed(image, 12, 2)} == {frozenset({1, 2})}
    for replicas in placed(image, 12, 3):
        assert set(replicas) == {1, 2, 3}
        assert replicas[0] != 3


def test_a_rack_whose_brokers_are_fenced_still_gets_its_replica() -> None:
    image = cluster([broker(1, rack="a"), broker(2, rack="a"), broker(3, rack="b", fenced=True)])

    assert {frozenset(replicas) for replicas in placed(image, 4, 2)} == {
        frozenset({1, 3}),
        frozenset({2, 3}),
    }


def test_the_dice_alone_decide_where_it_begins() -> None:
    assert placed(cluster(5), 9, 3, FixedDice(3, 1)) == placed(cluster(5), 9, 3, FixedDice(3, 1))
    assert placed(cluster(5), 1, 1, FixedDice(3, 0)) == [(4,)]


@given(
    racks=st.lists(st.sampled_from(["a", "b", "c", None]), min_size=1, max_size=9),
    count=st.integers(1, 40),
    start=st.integers(0, 100),
    shift=st.integers(0, 100),
    data=st.data(),
)
def test_any_cluster_is_served_fairly(
    racks: list[str | None], count: int, start: int, shift: int, data: st.DataObject
) -> None:
    factor = data.draw(st.integers(1, len(racks)))
    image = cluster(_racked(*racks))
    found = placed(image, count, factor, FixedDice(start, shift))

    assert all(len(replicas) == len(set(replicas)) == factor for replicas in found)
    leads = Counter(dict.fromkeys(image.brokers, 0))
    leads.update(replicas[0] for replicas in found)
    assert max(leads.values()) - min(leads.values()) <= 1
    for replicas in found:
        used = {image.brokers[one].rack for one in replicas}
        assert len(used) == min(factor, len(set(racks)))


def test_a_directory_is_known_beforehand_only_if_there_is_one() -> None:
    image = cluster(
        [broker(1), broker(2, directories=()), broker(3, directories=(directory(3), directory(4)))]
    )

    assert default_directory(image, 1) == directory(1)
    assert default_directory(image, 2) == MIGRATING_DIRECTORY
    assert default_directory(image, 3) == UNASSIGNED_DIRECTORY
    assert default_directory(image, 9) == MIGRATING_DIRECTORY
