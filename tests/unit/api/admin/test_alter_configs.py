"""Altering configurations: the checks of the broker before the controller decides."""

from datetime import timedelta

import pytest
from kio.schema.alter_configs.v2 import request as alter
from kio.schema.incremental_alter_configs.v1 import request as incremental
from kio.schema.incremental_alter_configs.v1 import response as altered
from tests.unit.api.support import Effects, ask, drive, request

from tidelog.api.admin import alter_configs
from tidelog.model.effects import ChangeMetadata
from tidelog.model.errors import ErrorCode

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
SET = 0


def resource(kind: int, name: str, *changes: tuple[str, int, str | None]):
    return incremental.AlterConfigsResource(
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            incremental.AlterableConfig(name=key, config_operation=how, value=value)
            for key, how, value in changes or [("retention.ms", SET, "1")]
        ),
    )


def decide(effect: ChangeMetadata) -> altered.IncrementalAlterConfigsResponse:
    """A controller that refuses changes to the topic `bad`."""
    return altered.IncrementalAlterConfigsResponse(
        throttle_time=timedelta(0),
        responses=tuple(
            altered.AlterConfigsResourceResponse(
                error_code=(
                    ErrorCode.invalid_config if asked.resource_name == "bad" else ErrorCode.none
                ),
                error_message="no" if asked.resource_name == "bad" else None,
                resource_type=asked.resource_type,
                resource_name=asked.resource_name,
            )
            for asked in effect.request.resources
        ),
    )


def outcomes(response) -> list[tuple]:
    return [
        (result.resource_name, result.error_code, result.error_message)
        for result in response.responses
    ]


def test_the_controller_decides_on_topics_and_on_this_broker():
    message = ask(
        44,
        resources=(
            resource(TOPIC, "orders"),
            resource(BROKER, "1"),
            resource(BROKER, ""),
            resource(TOPIC, "bad"),
        ),
        validate_only=True,
    )
    effects = Effects(decide)

    response = effects.drive(alter_configs.incremental_alter_configs(request(message)))

    assert effects.asked == [ChangeMetadata(message)]
    assert outcomes(response) == [
        ("orders", ErrorCode.none, None),
        ("1", ErrorCode.none, None),
        ("", ErrorCode.none, None),
        ("bad", ErrorCode.invalid_config, "no"),
    ]


def test_what_the_broker_refuses_never_reaches_the_controller():
    message = ask(44, resources=(resource(BROKER, "7"), resource(TOPIC, "orders")))
    effects = Effects(decide)

    response = effects.drive(alter_configs.incremental_alter_configs(request(message)))

    assert effects.asked == [ChangeMetadata(ask(44, resources=(resource(TOPIC, "orders"),)))]
    assert [result[1] for result in outcomes(response)] == [
        ErrorCode.invalid_request,
        ErrorCode.none,
    ]


@pytest.mark.parametrize(
    ("refused", "error", "message"),
    [
        (resource(TOPIC, "t", ("a", 9, "1")), ErrorCode.unknown_server_error, None),
        (
            resource(BROKER, "7"),
            ErrorCode.invalid_request,
            "Unexpected broker id, expected 1, but received 7",
        ),
        (
            resource(BROKER, "x"),
            ErrorCode.invalid_request,
            "Node id must be an integer, but it is: x",
        ),
        (
            resource(BROKER, "1" * 5000),
            ErrorCode.invalid_request,
            "Node id must be an integer, but it is: " + "1" * 5000,
        ),
        (
            resource(BROKER_LOGGER, "7", ("root", SET, "INFO")),
            ErrorCode.invalid_request,
            "Unexpected node id. Expected 1, but received 7",
        ),
        (
            resource(BROKER_LOGGER, "1", ("root", SET, "INFO")),
            ErrorCode.invalid_config,
            "Logger root does not exist!",
        ),
    ],
)
def test_refusals(refused, error: ErrorCode, message: str | None):
    response = drive(
        alter_configs.incremental_alter_configs(request(ask(44, resources=(refused,))))
    )

    assert outcomes(response) == [(refused.resource_name, error, message)]


def test_no_loggers_to_change_is_no_error():
    empty = incremental.AlterConfigsResource(
        resource_type=BROKER_LOGGER, resource_name="1", configs=()
    )

    response = drive(alter_configs.incremental_alter_configs(request(ask(44, resources=(empty,)))))

    assert outcomes(response) == [("1", ErrorCode.none, None)]


def test_replacing_everything_is_the_controllers_to_decide_too():
    asked = [
        alter.AlterConfigsResource(resource_type=kind, resource_name=name, configs=())
        for kind, name in ((BROKER, "7"), (TOPIC, "bad"), (BROKER_LOGGER, "1"))
    ]
    effects = Effects(decide)

    response = effects.drive(alter_configs.alter_configs(request(ask(33, resources=tuple(asked)))))

    assert effects.asked == [ChangeMetadata(ask(33, resources=tuple(asked[1:])))]
    assert [(name, error) for name, error, _ in outcomes(response)] == [
        ("7", ErrorCode.invalid_request),
        ("bad", ErrorCode.invalid_config),
        ("1", ErrorCode.none),
    ]
