"""AllocateProducerIds: blocks that never overlap."""

from dataclasses import replace

from kio.schema.allocate_producer_ids.v0.request import AllocateProducerIdsRequest
from tests.unit.controller.support import after, ask, cluster

from tidelog.model.errors import ErrorCode


def request(broker: int, epoch: int) -> AllocateProducerIdsRequest:
    return AllocateProducerIdsRequest(broker_id=broker, broker_epoch=epoch)


def test_blocks_follow_each_other() -> None:
    image = cluster(2)
    first = ask(image, request(1, 101))
    image = after(image, first)
    second = ask(image, request(2, 102))

    assert [
        (one.response.producer_id_start, one.response.producer_id_len) for one in (first, second)
    ] == [(0, 1000), (1000, 1000)]
    assert after(image, second).next_producer_id == 2000


def test_a_broker_of_another_epoch_gets_none() -> None:
    for asked in (request(1, 100), request(9, 109)):
        decision = ask(cluster(2), asked)
        assert decision.records == ()
        assert decision.response.error_code is ErrorCode.stale_broker_epoch


def test_the_ids_can_run_out() -> None:
    image = replace(cluster(1), next_producer_id=(1 << 63) - 1 - 999)

    assert ask(image, request(1, 101)).response.error_code is ErrorCode.unknown_server_error
