"""The controller decides on topics; the broker only checks whether deletion is enabled."""

import pytest
from kio.schema.delete_topics.v6.request import DeleteTopicState
from tests.unit.api.support import Effects, ask, request, settings

from tidelog.api.admin import topics
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode

DELETE_ORDERS = ask(20, topics=(DeleteTopicState(name="orders", topic_id=None),))


@pytest.mark.parametrize(
    ("handler", "message"),
    [
        (topics.create_topics, ask(19)),
        (topics.create_partitions, ask(37)),
        (topics.delete_topics, DELETE_ORDERS),
    ],
)
def test_the_controller_decides(handler, message):
    effects = Effects("its response")

    assert effects.drive(handler(request(message))) == "its response"
    assert effects.asked == [ChangeMetadata(message)]


@pytest.mark.parametrize(
    ("version", "error"),
    [(2, ErrorCode.invalid_request), (3, ErrorCode.topic_deletion_disabled)],
)
def test_deletion_may_be_disabled(version: int, error: ErrorCode):
    disabled = settings(delete_topic_enable="false")

    response = Effects().drive(
        topics.delete_topics(request(DELETE_ORDERS, version, settings=disabled))
    )

    [result] = response.responses
    assert (result.name, result.error_code) == ("orders", error)
    assert result.error_message == "Topic deletion is disabled."
