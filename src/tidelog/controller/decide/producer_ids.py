"""AllocateProducerIds: allocate blocks of producer ids that are never issued twice."""

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from kio.schema.allocate_producer_ids.v0.response import AllocateProducerIdsResponse

from tidelog.controller.decide.decision import NOT_THROTTLED, DecideContext, Decision
from tidelog.controller.image.image import ClusterImage
from tidelog.model.errors import ErrorCode
from tidelog.protocol.metadata.metadata_records import ProducerIdsRecord

BLOCK_SIZE = 1000
_LARGEST_ID = (1 << 63) - 1


def allocate_producer_ids(
    image: ClusterImage, request: AllocateProducerIdsRequest, context: DecideContext
) -> Decision:
    """Allocate the next block to a broker whose epoch is current."""
    broker = image.brokers.get(request.broker_id)
    if broker is None or broker.epoch != request.broker_epoch:
        return _refused(ErrorCode.stale_broker_epoch)
    first = image.next_producer_id
    if first > _LARGEST_ID - BLOCK_SIZE:
        return _refused(ErrorCode.unknown_server_error)
    record = ProducerIdsRecord(
        broker_id=broker.id, broker_epoch=broker.epoch, next_producer_id=first + BLOCK_SIZE
    )
    response = AllocateProducerIdsResponse(
        throttle_time=NOT_THROTTLED,
        error_code=ErrorCode.none,
        producer_id_start=first,
        producer_id_len=BLOCK_SIZE,
    )
    return Decision((record,), response)


def _refused(error: ErrorCode) -> Decision:
    response = AllocateProducerIdsResponse(
        throttle_time=NOT_THROTTLED, error_code=error, producer_id_start=0, producer_id_len=0
    )
    return Decision((), response)
