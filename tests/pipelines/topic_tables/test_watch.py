"""Which topics are tables, according to a real cluster's configuration, a file and flags."""

from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import ConfigResource
from tests.pipelines import records

from tidelog.client.administration.config_admin import alter_configs
from tidelog.client.client import Client
from tidelog.config.resource_type import ResourceType
from tidelog.testing import Cluster
from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.jobs.topic_tables.table_settings import DEFAULT, TableSettings
from tidelog_pipelines.jobs.topic_tables.watch import Watch
from tidelog_pipelines.settings import KafkaSettings
from tidelog_pipelines.sources.log_offsets import LogOffsets


def test_tables_of_the_configuration_of_a_file_and_of_flags(
    cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    configured, filed, named, none = (f"{topic}-{name}" for name in "cfmn")
    for name in (configured, filed, named, none):
        records.create(cluster.bootstrap, name, partitions=2, copies=1)
    with Client(cluster.bootstrap) as client:
        for name in (configured, filed):
            keys = {
                "tidelog.table.enable": "true",
                "tidelog.table.value.format": "raw",
                "tidelog.table.partition.by": "",
            }
            alter_configs(client, ResourceType.TOPIC, name, set_to=keys, delete=[])
    acks = records.produce(cluster.bootstrap, configured, ["x"] * 7)
    file = tmp_path / "tables.toml"
    file.write_text(f'["{filed}"]\nvalue-format = "text"\n["{topic}-absent"]\n')
    kafka = KafkaSettings(bootstrap_server=cluster.bootstrap)
    look = Watch(kafka, [named], str(file)).look()
    found = {name: one for name, one in look.tables.items() if name.startswith(topic)}
    assert {name: one.settings for name, one in found.items()} == {
        configured: TableSettings("raw", partition_by=()),
        filed: TableSettings("text"),
        named: DEFAULT,
        f"{topic}-absent": DEFAULT,
    }
    assert found[configured].partitions == (0, 1)
    assert len({one.id for one in found.values()}) == 4, "each existing topic has its id"
    assert found[f"{topic}-absent"].problem == "the topic does not exist"
    assert {none, configured} <= look.existing
    counts = {part: sum(ack.partition == part for ack in acks) for part in (0, 1)}
    assert look.ends[configured] == counts
    assert look.ends[named] == {0: 0, 1: 0}
    assert LogOffsets(kafka).first(configured, [0, 1]) == {0: 0, 1: 0}


def test_a_cluster_that_does_not_answer_is_reported() -> None:
    nobody = KafkaSettings(bootstrap_server="127.0.0.1:1")
    with pytest.raises(JobFailed, match=r"no broker answers at 127\.0\.0\.1:1 "):
        Watch(nobody, [], "").look()


def test_a_configuration_that_is_not_answered_is_no_table_that_was_switched_off(
    cluster: Cluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    codes = [KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._TIMED_OUT]

    def describe(resources: list[ConfigResource], **_: object) -> dict[ConfigResource, Any]:
        answer: Future[None] = Future()
        answer.set_exception(KafkaException(KafkaError(codes[0])))
        return dict.fromkeys(resources, answer)

    watch = Watch(KafkaSettings(bootstrap_server=cluster.bootstrap), [], "")
    monkeypatch.setattr(watch._admin, "describe_configs", describe)
    assert topic not in watch.look().tables, "it may just have been deleted"
    codes.pop(0)
    with pytest.raises(JobFailed, match="no broker answers"):
        watch.look()
