"""CreateTopics (key 19), versions 2-7; DeleteTopics (20), 1-6; CreatePartitions (37), 0-3.

The controller decides; the answer leaves when its records are committed and applied here, so that
a client that was told of success finds the topic. Topic ids since CreateTopics 7 and DeleteTopics 6
(KIP-516), defaults for counts since CreateTopics 4 (KIP-464), the effective configuration in the
answer since 5 (KIP-525).

With `delete.topic.enable=false` every deletion is TOPIC_DELETION_DISABLED, or INVALID_REQUEST for a
client from before that error (version 2 and older).
"""

from datetime import timedelta

from kio.schema.delete_topics.v6.response import DeletableTopicResult, DeleteTopicsResponse

from tidelog.api.handler import Handling, Request
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode

_FIRST_WITH_DELETION_DISABLED = 3


def create_topics(request: Request) -> Handling:
    """Creates topics, or only checks whether they could be."""
    return (yield ChangeMetadata(request.message))


def create_partitions(request: Request) -> Handling:
    """Adds partitions to topics."""
    return (yield ChangeMetadata(request.message))


def delete_topics(request: Request) -> Handling:
    """Deletes topics by name or id."""
    if not request.settings.delete_topic_enable:
        return _deletion_disabled(request)
    return (yield ChangeMetadata(request.message))


def _deletion_disabled(request: Request) -> DeleteTopicsResponse:
    error = (
        ErrorCode.topic_deletion_disabled
        if request.version >= _FIRST_WITH_DELETION_DISABLED
        else ErrorCode.invalid_request
    )
    return DeleteTopicsResponse(
        throttle_time=timedelta(0),
        responses=tuple(
            DeletableTopicResult(
                name=topic.name,
                topic_id=topic.topic_id,
                error_code=error,
                error_message="Topic deletion is disabled.",
            )
            for topic in request.message.topics
        ),
    )
