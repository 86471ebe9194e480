"""Values are parsed from text, or refused with the error messages of Apache Kafka."""

import pytest

from tidelog.config.key import BadValue, Value
from tidelog.config.keys.broker_keys import BROKER_KEYS, DYNAMIC_KEYS
from tidelog.config.keys.ignored_keys import IGNORED_KEYS
from tidelog.config.keys.topic_keys import SYNONYMS, TOPIC_KEYS


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("retention.ms", " 5 ", 5),
        ("retention.ms", "-1", -1),
        ("cleanup.policy", "compact, delete", ("compact", "delete")),
        ("cleanup.policy", "", ()),
        ("preallocate", "TRUE", True),
        ("min.cleanable.dirty.ratio", "1", 1.0),
        ("compression.gzip.level", "-1", -1),
        ("leader.replication.throttled.replicas", "0:1,1:2", ("0:1", "1:2")),
        ("leader.replication.throttled.replicas", "*", ("*",)),
        ("message.timestamp.type", "LogAppendTime", "LogAppendTime"),
        ("tidelog.table.enable", "true", True),
        ("tidelog.table.cluster.by", "key,value.id", ("key", "value.id")),
        ("tidelog.table.partition.by", "", ()),
        ("tidelog.table.partition.by", "date,partition", ("date", "partition")),
        ("tidelog.table.retention.ms", "-1", -1),
    ],
)
def test_a_text_has_its_value(name: str, text: str, value: Value) -> None:
    assert TOPIC_KEYS[name].parse(text) == value


@pytest.mark.parametrize(
    ("name", "text", "reason"),
    [
        ("retention.ms", "abc", "Not a number of type LONG"),
        ("retention.ms", "", "Not a number of type LONG"),
        ("retention.ms", "1.5", "Not a number of type LONG"),
        ("retention.ms", "-5", "Value must be at least -1"),
        ("retention.bytes", "99999999999999999999", "Not a number of type LONG"),
        ("index.interval.bytes", "2147483648", "Not a number of type INT"),
        ("segment.bytes", "10", "Value must be at least 1048576"),
        ("preallocate", "maybe", "Expected value to be either true or false"),
        ("cleanup.policy", "foo", "String must be one of: compact, delete"),
        (
            "compression.type",
            "bzip",
            "String must be one of: uncompressed, zstd, lz4, snappy, gzip, producer",
        ),
        ("compression.gzip.level", "0", "Value must be between 1 and 9 or equal to -1"),
        ("compression.zstd.level", "99", "Value must be no more than 22"),
        ("min.cleanable.dirty.ratio", "1.5", "Value must be no more than 1"),
        ("min.cleanable.dirty.ratio", "abc", "Not a number of type DOUBLE"),
        ("message.timestamp.type", "x", "String must be one of: CreateTime, LogAppendTime"),
        ("tidelog.table.enable", "yes", "Expected value to be either true or false"),
        ("tidelog.table.format", "parquet", "String must be one of: delta, iceberg"),
        ("tidelog.table.mode", "merge", "String must be one of: append, upsert, history"),
        ("tidelog.table.partition.by", "key", "String must be one of: date, partition"),
        ("tidelog.table.retention.ms", "0", "Value must be unlimited (-1) or at least 1"),
        (
            "tidelog.table.value.format",
            "xml",
            "String must be one of: json, text, raw, avro, protobuf",
        ),
    ],
)
def test_a_text_without_a_value_is_refused(name: str, text: str, reason: str) -> None:
    with pytest.raises(BadValue) as refused:
        TOPIC_KEYS[name].parse(text)

    assert str(refused.value) == f"Invalid value {text} for configuration {name}: {reason}"


def test_throttled_replicas_are_pairs() -> None:
    with pytest.raises(BadValue) as refused:
        TOPIC_KEYS["leader.replication.throttled.replicas"].parse("a")

    assert str(refused.value) == (
        "Invalid value [a] for configuration leader.replication.throttled.replicas: "
        "leader.replication.throttled.replicas must be the literal '*' or a list of replicas in "
        "the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
    )


def test_every_default_is_a_value_of_its_key() -> None:
    for key in (*TOPIC_KEYS.values(), *BROKER_KEYS.values()):
        if key.default is not None:
            key.parse(key.default)


def test_the_tables_fit_each_other() -> None:
    assert {s.name for family in SYNONYMS.values() for s in family} <= set(BROKER_KEYS)
    assert set(SYNONYMS) <= set(TOPIC_KEYS)
    assert BROKER_KEYS.keys() | IGNORED_KEYS.keys() >= DYNAMIC_KEYS
    for name, family in SYNONYMS.items():
        key, first = TOPIC_KEYS[name], BROKER_KEYS[family[0].name]
        assert key.type is first.type
        if len(family) == 1:
            assert key.default == first.default, name


def test_every_key_says_what_it_is_for() -> None:
    for key in (*TOPIC_KEYS.values(), *BROKER_KEYS.values()):
        assert key.documentation.endswith(".") or key.documentation.endswith("..."), key.name
