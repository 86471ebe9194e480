from datetime import timedelta
from typing import Any

import pytest
from kio.schema.create_topics.v7.request import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
)

from tidelog.client import connection
from tidelog.client.client import Address, Client, explain, parse_bootstrap
from tidelog.model.errors import ErrorCode
from tidelog.model.user_error import UserError

MINUTE = timedelta(minutes=1)
ONE: dict[str, Any] = {
    "num_partitions": 1,
    "replication_factor": 1,
    "assignments": (),
    "configs": (),
}


def test_bootstrap_lists() -> None:
    assert parse_bootstrap("a:1, b:2,") == [Address("a", 1), Address("b", 2)]
    assert parse_bootstrap("[::1]:9092") == [Address("::1", 9092)]


@pytest.mark.parametrize("text", ["", ",", "a", "a:", ":1", "a:x", "a:0", "a:70000"])
def test_a_bad_bootstrap_list_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="--bootstrap-server"):
        parse_bootstrap(text)


def test_an_unreachable_cluster_is_told_with_every_address() -> None:
    # Nothing listens on ports 1 and 2 of a test machine.
    client = Client("127.0.0.1:1,127.0.0.1:2")
    with pytest.raises(UserError) as failure:
        client.metadata(None)
    assert str(failure.value) == (
        "no broker can be reached "
        "(127.0.0.1:1: Connection refused; 127.0.0.1:2: Connection refused)."
    )


def test_the_brokers_words_go_before_the_name_of_an_error() -> None:
    assert explain(ErrorCode.invalid_config, "Unknown topic config name: foo") == (
        "Unknown topic config name: foo"
    )
    assert explain(ErrorCode.invalid_config) == "INVALID_CONFIG"


def test_text_that_the_protocol_cannot_carry_is_told_in_a_sentence() -> None:
    check_refused(
        CreateTopicsRequest(topics=(CreatableTopic(name="a\udcff", **ONE),), timeout=MINUTE)
    )


def test_a_number_that_the_protocol_cannot_carry_is_told_in_a_sentence() -> None:
    brokers = CreatableReplicaAssignment(partition_index=0, broker_ids=(99_999_999_999,))
    topic = CreatableTopic(name="orders", **{**ONE, "assignments": (brokers,)})
    check_refused(CreateTopicsRequest(topics=(topic,), timeout=MINUTE))


def check_refused(request: CreateTopicsRequest) -> None:
    with pytest.raises(UserError, match="a value does not fit into Kafka's protocol"):
        connection._frame(request, 1)
