"""kafka-reassign-partitions --throttle limits the rate of a move; --verify removes the limit."""

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.clients.librdkafka import producer_of, send_values
from tests.clients.samples import numbered
from tests.cluster.creations import assign_topic
from tests.cluster.foreground import await_seen, await_that
from tests.cluster.tools import Tools

from tidelog.testing import Cluster

REASSIGN, CONFIGS = "kafka-reassign-partitions", "kafka-configs"
RATE = 1_000_000
RECORDS, SIZE = 400, 10_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    # After a large fetch, throttling delays the next one, so use small fetches for an even rate.
    with Cluster(
        directory=tmp_path / "cluster",
        properties={"replica.fetch.max.bytes": "100000"},
        network_faults=False,
    ) as cluster:
        yield cluster


def configured(tools: Tools, kind: str, name: str) -> str:
    """The throttling configurations that are set on a topic or broker."""
    said = tools.run(CONFIGS, "--describe", f"--{kind}", name)
    return "\n".join(line for line in said.splitlines() if "throttled" in line)


def test_a_move_keeps_to_its_throttle_and_verify_removes_it(
    cluster: Cluster, kafka_libs: Path, tmp_path: Path
) -> None:
    assign_topic(cluster, "slow", [1, 2])
    send_values(producer_of(cluster), "slow", numbered(RECORDS, SIZE), 0)
    plan = tmp_path / "plan.json"
    wanted = [{"topic": "slow", "partition": 0, "replicas": [1, 3]}]
    plan.write_text(json.dumps({"version": 1, "partitions": wanted}))
    tools = Tools(kafka_libs, cluster)
    began = time.monotonic()
    started = tools.run(
        REASSIGN,
        "--execute",
        "--reassignment-json-file",
        str(plan),
        "--throttle",
        str(RATE),
    )
    assert "Successfully started partition reassignment for slow-0" in started
    rate = f"leader.replication.throttled.rate={RATE}"
    await_seen(lambda: configured(tools, "broker", "1"), lambda said: rate in said)
    await_seen(lambda: configured(tools, "topic", "slow"), lambda said: "0:1" in said)
    send_values(producer_of(cluster, acks="all"), "slow", numbered(10), 0)
    cluster.wait_for_replicas("slow", 0, [1, 3])
    took = time.monotonic() - began
    verified = await_seen(
        lambda: tools.run(REASSIGN, "--verify", "--reassignment-json-file", str(plan)),
        lambda said: "Reassignment of partition slow-0 is completed." in said,
    )
    print(f"{RECORDS * SIZE} bytes at {RATE} bytes/s took {took:.1f} s")
    assert took > 0.6 * RECORDS * SIZE / RATE, "nothing was held back"
    assert "Clearing broker-level throttles" in verified
    assert "Clearing topic-level throttles" in verified
    await_that(lambda: configured(tools, "broker", "1"), "")
    await_that(lambda: configured(tools, "topic", "slow"), "")
