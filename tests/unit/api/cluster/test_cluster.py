"""DescribeCluster: brokers and controllers."""

import pytest
from tests.unit.api.support import CLUSTER_ID, Effects, ask, broker, image, request

from tidelog.api.cluster import cluster
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode

BROKERS, CONTROLLERS = 1, 2
ALL_CLUSTER_OPERATIONS = 8096


def describe(listener: str = "PLAINTEXT", image_=None, **fields):
    message = ask(60, **{"endpoint_type": BROKERS, **fields})
    return cluster.describe_cluster(request(message, 2, listener=listener, image=image_ or image()))


def test_brokers():
    response = describe()

    assert (response.cluster_id, response.controller_id) == (CLUSTER_ID, 1)
    assert [(b.broker_id, b.host, b.port, b.rack, b.is_fenced) for b in response.brokers] == [
        (1, "host1", 9092, "rack1", False),
        (2, "host2", 9093, "rack2", False),
    ]
    assert response.cluster_authorized_operations == -(2**31)


def test_authorized_operations():
    response = describe(include_cluster_authorized_operations=True)

    assert response.cluster_authorized_operations == ALL_CLUSTER_OPERATIONS


def test_fenced_brokers_are_shown_on_request_only():
    half = image(brokers={1: broker(1), 2: broker(2, fenced=True)})

    assert [b.broker_id for b in describe(image_=half).brokers] == [1]
    shown = describe(image_=half, include_fenced_brokers=True).brokers
    assert [(b.broker_id, b.is_fenced) for b in shown] == [(1, False), (2, True)]


def test_controllers_through_their_own_listener():
    response = describe("CONTROLLER", endpoint_type=CONTROLLERS)

    assert [(b.broker_id, b.host, b.port) for b in response.brokers] == [(1, "host1", 9093)]
    assert (response.controller_id, response.endpoint_type) == (1, CONTROLLERS)


@pytest.mark.parametrize(
    ("listener", "asked", "error", "message"),
    [
        (
            "PLAINTEXT",
            CONTROLLERS,
            ErrorCode.mismatched_endpoint_type,
            "The request was sent to an endpoint of type BROKER, "
            "but we wanted an endpoint of type CONTROLLER",
        ),
        (
            "CONTROLLER",
            BROKERS,
            ErrorCode.mismatched_endpoint_type,
            "The request was sent to an endpoint of type CONTROLLER, "
            "but we wanted an endpoint of type BROKER",
        ),
        ("PLAINTEXT", 7, ErrorCode.unsupported_endpoint_type, "Unsupported endpoint type 7"),
    ],
)
def test_the_wrong_kind_of_endpoint(listener: str, asked: int, error: ErrorCode, message: str):
    response = describe(listener, endpoint_type=asked)

    assert (response.error_code, response.error_message) == (error, message)
    assert response.brokers == ()


def test_the_controller_forgets_a_broker():
    message = ask(64, broker_id=2)
    effects = Effects("its response")

    assert effects.drive(cluster.unregister_broker(request(message, 0))) == "its response"
    assert effects.asked == [ChangeMetadata(message)]
