"""The group APIs pass their requests to coordinators, and combine the answers."""

from datetime import timedelta

import pytest
from kio.schema.list_groups.v5.response import ListedGroup, ListGroupsResponse
from tests.unit.api.support import Effects, ask, drive, request

from tidelog.api.groups import groups
from tidelog.coordination.groups.replies import refusal
from tidelog.model.effects import Coordinate, CoordinateAll
from tidelog.model.errors import ErrorCode


@pytest.mark.parametrize(
    ("handler", "api_key"),
    [
        (groups.join_group, 11),
        (groups.heartbeat, 12),
        (groups.leave_group, 13),
        (groups.sync_group, 14),
    ],
)
def test_members_talk_to_their_coordinator(handler, api_key: int):
    message = ask(api_key, group_id="g")
    effects = Effects("its response")

    assert effects.drive(handler(request(message, 4))) == "its response"
    assert effects.asked == [Coordinate("g", message)]


@pytest.mark.parametrize("missing", ["protocol_type", "protocol_name"])
def test_sync_group_must_name_its_protocol_from_version_5_on(missing: str):
    fields = {"protocol_type": "consumer", "protocol_name": "range", missing: None}
    message = ask(14, group_id="g", **fields)

    response = drive(groups.sync_group(request(message, 5)))

    assert response.error_code is ErrorCode.inconsistent_group_protocol


# -- ListGroups ------------------------------------------------------------------------------------


def listed(*names: str, error: ErrorCode = ErrorCode.none) -> ListGroupsResponse:
    return ListGroupsResponse(
        throttle_time=timedelta(0),
        error_code=error,
        groups=tuple(
            ListedGroup(
                group_id=name, protocol_type="consumer", group_state="Stable", group_type="classic"
            )
            for name in names
        ),
    )


def test_groups_of_all_coordinators_here_are_listed_together():
    message = ask(16)
    effects = Effects([listed("a"), listed(error=ErrorCode.not_coordinator), listed("b", "c")])

    response = effects.drive(groups.list_groups(request(message)))

    assert effects.asked == [CoordinateAll(message)]
    assert [group.group_id for group in response.groups] == ["a", "b", "c"]
    assert response.error_code is ErrorCode.none


def test_a_coordinator_that_is_loading_makes_the_list_wait():
    loading = listed(error=ErrorCode.coordinator_load_in_progress)

    response = drive(groups.list_groups(request(ask(16))), [listed("a"), loading])

    assert (response.error_code, response.groups) == (loading.error_code, ())


# -- DescribeGroups and DeleteGroups ---------------------------------------------------------------


def refused(error: ErrorCode):
    return lambda effect: refusal(effect.request, error, 6)


def test_each_group_is_described_by_its_own_coordinator():
    effects = Effects(refused(ErrorCode.none), refused(ErrorCode.not_coordinator))

    response = effects.drive(groups.describe_groups(request(ask(15, groups=("a", "b", "a")))))

    assert [(effect.key, effect.request.groups) for effect in effects.asked] == [
        ("a", ("a",)),
        ("b", ("b",)),
    ]
    assert [(group.group_id, group.error_code) for group in response.groups] == [
        ("a", ErrorCode.none),
        ("b", ErrorCode.not_coordinator),
    ]


def test_authorized_operations_of_the_groups_that_were_found():
    message = ask(15, groups=("a", "b"), include_authorized_operations=True)

    response = drive(
        groups.describe_groups(request(message)),
        refused(ErrorCode.none),
        refused(ErrorCode.not_coordinator),
    )

    assert [group.authorized_operations for group in response.groups] == [3400, -(2**31)]


def test_each_group_is_deleted_by_its_own_coordinator():
    effects = Effects(refused(ErrorCode.none), refused(ErrorCode.non_empty_group))

    response = effects.drive(groups.delete_groups(request(ask(42, groups_names=("a", "b")))))

    assert [effect.key for effect in effects.asked] == ["a", "b"]
    assert [(result.group_id, result.error_code) for result in response.results] == [
        ("a", ErrorCode.none),
        ("b", ErrorCode.non_empty_group),
    ]
