"""The kit refuses wrong arguments with a sentence that names the valid ones."""

from pathlib import Path
from typing import Any

import pytest

from tidelog.testing import Cluster
from tidelog.testing.plugin import TAKES


def test_values_of_properties_need_not_be_text(tmp_path: Path) -> None:
    given = {"num.partitions": 2, "auto.create.topics.enable": False, "log.retention.hours": "1"}
    properties = Cluster(1, directory=tmp_path, properties=given).layout.properties(1)
    assert [properties[key] for key in given] == ["2", "false", "1"]


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (
            {"properties": {"num.partition": "1"}},
            r"properties: 'num\.partition' is not a broker property "
            r"\(did you mean 'num\.partitions'\?\)$",
        ),
        (
            {"broker_properties": {2: {"xyzzy": "1"}}},
            r"broker_properties\[2\]: 'xyzzy' is not a broker property$",
        ),
        ({"broker_properties": {4: {}}}, "there is no node 4; there are 1, 2, 3$"),
        ({"brokers": "3"}, "brokers: a cluster has at least one, not '3'$"),
    ],
)
def test_a_wrong_argument_of_a_cluster(
    arguments: dict[str, Any], error: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=error):
        Cluster(directory=tmp_path, **arguments)


def test_keys_that_kafka_has_are_accepted_even_if_they_have_no_effect(tmp_path: Path) -> None:
    given = {"num.io.threads": "1", "listener.name.x.y": "z", "authorizer.class.name": ""}
    assert Cluster(1, directory=tmp_path, properties=given).layout.properties(1).items() >= {
        *given.items()
    }


def test_arguments_of_a_marker_by_position_and_by_name() -> None:
    assert TAKES["tidelog"].bind((1,), {"racks": ["a"]}) == {"brokers": 1, "racks": ["a"]}
    topic = TAKES["tidelog_topic"]
    assert topic.bind((3, 2), {"cleanup_policy": "compact"}) == {
        "partitions": 3,
        "replication_factor": 2,
        "cleanup_policy": "compact",
    }
    with pytest.raises(ValueError, match="'partitions' is given twice"):
        topic.bind((3,), {"partitions": 3})
    with pytest.raises(ValueError, match=r"'retention' \(did you mean '\w+'\?\); there are part"):
        topic.bind((), {"retention": 1})
