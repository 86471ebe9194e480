"""Real clients on encrypted listeners: who belongs gets in, and the others see Kafka's errors.

With `--system kafka` the same tests run against Apache Kafka.
"""

import asyncio
import ssl
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, KafkaError, Producer
from kafka import KafkaConsumer, KafkaProducer
from tests.clients.encrypted_broker import MODULE, EncryptedBroker, encrypted_broker
from tests.clients.java import CLASSES, java, run_tool
from tests.clients.librdkafka import create
from tests.clients.schema import Schemas
from tests.clients.systems import PATIENCE, ROOT, Broker

CASES = ("MUTUAL", "CLIENTS")
"""The listeners that let their clients in: with a certificate, or with a password."""


@pytest.fixture(scope="module")
def encrypted(
    system: type[Broker], schemas: Schemas, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[EncryptedBroker]:
    with encrypted_broker(system, schemas, tmp_path_factory.mktemp("encrypted")) as made:
        yield made


def librdkafka(
    broker: EncryptedBroker,
    listener: str,
    *,
    certificate: str | None = "alice",
    password: str = "alice-secret",
    trusts: str | None = None,
) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap.servers": broker.bootstrap(listener),
        "security.protocol": "SASL_SSL" if listener == "CLIENTS" else "SSL",
        "ssl.ca.location": trusts or broker.trusted,
        "ssl.endpoint.identification.algorithm": "https",
    }
    if listener == "CLIENTS":
        config |= {
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": password,
        }
    elif certificate is not None:
        config |= {
            "ssl.certificate.location": broker.path(f"{certificate}-cert.pem"),
            "ssl.key.location": broker.path(f"{certificate}-key.pem"),
        }
    return config


def python_context(broker: EncryptedBroker) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=broker.trusted)
    context.load_cert_chain(broker.path("alice.pem"))
    return context


def python_config(broker: EncryptedBroker, listener: str) -> dict[str, Any]:
    config: dict[str, Any] = {
        "bootstrap_servers": broker.bootstrap(listener),
        "security_protocol": "SASL_SSL" if listener == "CLIENTS" else "SSL",
        "ssl_context": python_context(broker),
    }
    if listener == "CLIENTS":
        config |= {
            "sasl_mechanism": "PLAIN",
            "sasl_plain_username": "alice",
            "sasl_plain_password": "alice-secret",
        }
    return config


@pytest.mark.parametrize("listener", CASES)
def test_confluent_kafka_writes_and_reads(
    encrypted: EncryptedBroker, listener: str, topic: str
) -> None:
    create(encrypted.broker, topic)
    config = librdkafka(encrypted, listener)
    producer = Producer(config)
    large = bytes(range(256)) * 3_000
    for value in (b"first", large, b"last"):
        producer.produce(topic, value)
    assert producer.flush(PATIENCE) == 0
    consumer = Consumer(config | {"group.id": topic, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    found = [message.value() for message in consumer.consume(3, PATIENCE)]
    consumer.close()
    assert found == [b"first", large, b"last"]


@pytest.mark.parametrize("listener", CASES)
def test_kafka_python_writes_and_reads(
    encrypted: EncryptedBroker, listener: str, topic: str
) -> None:
    create(encrypted.broker, topic)
    config = python_config(encrypted, listener)
    producer = KafkaProducer(**config)
    producer.send(topic, b"hello").get(PATIENCE)
    producer.close()
    consumer = KafkaConsumer(topic, auto_offset_reset="earliest", group_id=topic, **config)
    assert next(consumer).value == b"hello"
    consumer.close()


@pytest.mark.parametrize("listener", CASES)
def test_aiokafka_writes_and_reads(encrypted: EncryptedBroker, listener: str, topic: str) -> None:
    create(encrypted.broker, topic)
    config = python_config(encrypted, listener)

    async def round_trip() -> bytes | None:
        async with AIOKafkaProducer(**config) as producer:
            await producer.send_and_wait(topic, b"hello")
        async with AIOKafkaConsumer(topic, auto_offset_reset="earliest", **config) as consumer:
            return (await consumer.getone()).value

    assert asyncio.run(asyncio.wait_for(round_trip(), PATIENCE)) == b"hello"


@pytest.mark.parametrize("listener", CASES)
def test_kcat_writes_and_reads(encrypted: EncryptedBroker, listener: str, topic: str) -> None:
    subprocess.run([ROOT / "tools/test-needs", "kcat"], check=True)
    create(encrypted.broker, topic)
    config = librdkafka(encrypted, listener)
    options = [text for key, value in config.items() for text in ("-X", f"{key}={value}")]
    subprocess.run(
        ["kcat", "-P", "-t", topic, *options], input=b"hello\n", check=True, timeout=PATIENCE
    )
    read = ["kcat", "-C", "-t", topic, "-e", "-q", *options]
    assert subprocess.run(read, capture_output=True, timeout=PATIENCE).stdout == b"hello\n"


def java_config(
    broker: EncryptedBroker,
    listener: str,
    *,
    certificate: str | None = "alice",
    password: str = "alice-secret",
    trusts: str | None = None,
) -> str:
    lines = [
        f"security.protocol={'SASL_SSL' if listener == 'CLIENTS' else 'SSL'}",
        "ssl.truststore.type=PEM",
        f"ssl.truststore.location={trusts or broker.trusted}",
        "request.timeout.ms=20000",
        "default.api.timeout.ms=20000",
    ]
    if listener == "CLIENTS":
        login = f'username="alice" password="{password}"'
        lines += ["sasl.mechanism=PLAIN", f"sasl.jaas.config={MODULE} required {login};"]
    elif certificate is not None:
        store = broker.path(f"{certificate}.pem")
        lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={store}"]
    path = broker.directory / "client.properties"
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def java_tool(
    broker: EncryptedBroker, listener: str, tool: str, *arguments: str, stdin: str = ""
) -> tuple[int, str]:
    bootstrap = ("--bootstrap-server", broker.bootstrap(listener))
    libs = broker.broker.schemas.libs
    return java(libs).run(CLASSES[tool], (*bootstrap, *arguments), stdin)


@pytest.mark.parametrize("listener", CASES)
def test_java_writes_and_reads(encrypted: EncryptedBroker, listener: str, topic: str) -> None:
    config = java_config(encrypted, listener)
    made = ("--create", "--topic", topic, "--command-config", config)
    assert java_tool(encrypted, listener, "kafka-topics", *made)[0] == 0
    wrote = java_tool(
        encrypted,
        listener,
        "kafka-console-producer",
        "--topic",
        topic,
        "--command-config",
        config,
        stdin="hello\n",
    )
    assert wrote[0] == 0, wrote[1]
    read = ("--topic", topic, "--from-beginning", "--max-messages", "1")
    output = run_tool(
        encrypted.broker.schemas.libs,
        "kafka-console-consumer",
        "--bootstrap-server",
        encrypted.bootstrap(listener),
        *read,
        "--command-config",
        config,
    )
    assert output.splitlines()[0] == "hello"


SEEN_LATE = KafkaError._TRANSPORT
"""In TLS 1.3 a client learns that its certificate is refused when it reads the first answer."""
REFUSED: dict[str, tuple[str, dict[str, Any], int]] = {
    "no certificate": ("MUTUAL", {"certificate": None}, SEEN_LATE),
    "an expired certificate": ("MUTUAL", {"certificate": "expired"}, SEEN_LATE),
    "a certificate of another authority": ("MUTUAL", {"certificate": "stranger"}, SEEN_LATE),
    "an unknown authority of the server": (
        "MUTUAL",
        {"trusts": "other-ca.pem"},
        KafkaError._SSL,
    ),
    "another name of the server": ("ELSEWHERE", {}, KafkaError._SSL),
    "a wrong password": ("CLIENTS", {"password": "guess"}, KafkaError._AUTHENTICATION),
}
"""The listener, what is wrong, and the error that librdkafka reports."""


def await_error(producer: Producer, errors: list[KafkaError], expected: int) -> None:
    """Wait until a callback has added this error."""
    deadline = time.monotonic() + PATIENCE
    while expected not in {error.code() for error in errors}:
        assert time.monotonic() < deadline, errors
        producer.poll(0.1)


def changed(broker: EncryptedBroker, changes: dict[str, Any]) -> dict[str, Any]:
    return {name: broker.path(value) if name == "trusts" else value
            for name, value in changes.items()}  # fmt: skip


@pytest.mark.parametrize("why", REFUSED)
def test_librdkafka_is_refused_with_kafkas_error(encrypted: EncryptedBroker, why: str) -> None:
    listener, changes, expected = REFUSED[why]
    errors: list[KafkaError] = []
    config = librdkafka(encrypted, listener, **changed(encrypted, changes))
    producer = Producer(config | {"error_cb": errors.append, "log_level": 0})
    await_error(producer, errors, expected)


@pytest.mark.parametrize("why", REFUSED)
def test_java_is_refused_with_kafkas_error(encrypted: EncryptedBroker, why: str) -> None:
    listener, changes, _ = REFUSED[why]
    config = java_config(encrypted, listener, **changed(encrypted, changes))
    status, output = java_tool(
        encrypted, listener, "kafka-topics", "--list", "--command-config", config
    )
    assert status != 0
    expected = "SaslAuthenticationException" if listener == "CLIENTS" else "SslAuthenticationExc"
    assert expected in output


def test_a_plaintext_client_does_not_get_in_and_others_are_served(
    encrypted: EncryptedBroker, topic: str
) -> None:
    errors: list[KafkaError] = []
    plaintext = {"bootstrap.servers": encrypted.bootstrap("MUTUAL"), "error_cb": errors.append}
    await_error(Producer(plaintext | {"log_level": 0}), errors, KafkaError._ALL_BROKERS_DOWN)
    create(encrypted.broker, topic)
    producer = Producer(librdkafka(encrypted, "MUTUAL"))
    producer.produce(topic, b"hello")
    assert producer.flush(PATIENCE) == 0
