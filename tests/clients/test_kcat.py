"""kcat lists, produces and reads."""

import json
import re
import shutil
import subprocess

import pytest
from tests.clients.librdkafka import create, producer_of, read, send
from tests.clients.samples import CODECS, SAMPLES
from tests.clients.systems import PATIENCE, ROOT, Broker


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    subprocess.run([ROOT / "tools/test-needs", "kcat"], check=True)
    assert shutil.which("kcat")


def kcat(broker: Broker, *args: str, stdin: bytes = b"") -> bytes:
    done = subprocess.run(
        ["kcat", "-b", broker.bootstrap, *args], input=stdin, capture_output=True, timeout=PATIENCE
    )
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout


def test_lists(broker: Broker, topic: str) -> None:
    create(broker, topic, 3)
    output = kcat(broker, "-L", "-t", topic).decode()
    assert re.search(rf"broker 1 at {broker.bootstrap} \(controller\)", output)
    assert f'topic "{topic}" with 3 partitions' in output
    assert output.count("leader 1, replicas: 1, isrs: 1") == 3
    described = json.loads(kcat(broker, "-L", "-J"))
    assert topic in [found["topic"] for found in described["topics"]]
    assert described["controllerid"] == 1


def test_reads(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send(producer_of(broker), topic, SAMPLES)
    output = kcat(
        broker, "-C", "-t", topic, "-o", "beginning", "-e", "-q", "-f", "%o %T %K %S\\n"
    ).decode()
    expected = []
    for offset, sample in enumerate(SAMPLES):
        key = -1 if sample.key is None else len(sample.key)
        value = -1 if sample.value is None else len(sample.value)
        expected.append(f"{offset} {sample.timestamp} {key} {value}")
    assert output.splitlines() == expected


@pytest.mark.parametrize("codec", CODECS)
def test_produces(broker: Broker, topic: str, codec: str) -> None:
    create(broker, topic)
    lines = [f"k{n}:v{n}".encode() for n in range(100)]
    kcat(broker, "-P", "-t", topic, "-K", ":", "-z", codec, "-H", "h=1", stdin=b"\n".join(lines))
    samples = read(broker, topic, 100)
    assert [b"%s:%s" % (sample.key, sample.value) for sample in samples] == lines
    assert {sample.headers for sample in samples} == {(("h", b"1"),)}


def test_queries_offsets(broker: Broker, topic: str) -> None:
    create(broker, topic)
    send(producer_of(broker), topic, SAMPLES[:5])
    output = kcat(broker, "-Q", "-t", f"{topic}:0:{SAMPLES[3].timestamp}").decode()
    assert re.search(rf"{topic} \[0\] offset 3", output)
