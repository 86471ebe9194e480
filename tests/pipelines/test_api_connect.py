"""The Python API through Spark Connect gives the same results as in a regular session."""

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.pipelines import records
from tests.pipelines.segment_writing import NOW, write_segment

from tidelog.client.ledger import Acknowledged, Ledger
from tidelog.model.ids import TopicPartition
from tidelog.protocol.records.records import Record, build_batch
from tidelog.testing import Cluster

ROOT = Path(__file__).parents[2]


def test_everything_works_or_is_refused_in_one_sentence(
    cluster: Cluster, topic: str, tmp_path: Path
) -> None:
    records.create(cluster.bootstrap, topic, partitions=1, copies=1)
    records.produce(cluster.bootstrap, topic, ['{"id":1}', "{", '{"id":2}'])
    write_segment(tmp_path / "data", "t", [build_batch([Record(None, b"v", NOW, offset=0)], 0)])
    with Ledger(tmp_path / "ledger.jsonl") as ledger:
        place = TopicPartition("t", 0)
        ledger.enter(place, [Acknowledged(0, None, b"v"), Acknowledged(1, None, b"w")])

    done = subprocess.run(
        [
            *(sys.executable, "-m", "tests.pipelines.through_connect"),
            *(cluster.bootstrap, topic, str(tmp_path)),
        ],
        env={**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}"},
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout.splitlines()[-1]) == {
        "ingested": [1, 2, {"the value is not JSON": 1}, 0],
        "decoded": [1, 2],
        "quarantine": 1,
        "segments": 1,
        "audit": ["acknowledged 2, lost 1, duplicated 0", 1],
        "flapping": [3, 3],
        "refused": [
            "through Spark Connect, audit needs out, a directory of the server's.",
            "metrics_port does not work with remote: a server runs the batches.",
        ],
    }
