"""JSON files of commands: wrong content is refused with one sentence."""

from pathlib import Path

import pytest

from tidelog.cli.json_file import read_json
from tidelog.cli.kafka_tools.delete_records import read_offsets
from tidelog.cli.kafka_tools.reassignment_plan import check_plan, read_plan, read_topics
from tidelog.model.ids import TopicPartition
from tidelog.model.user_error import UserError


def written(directory: Path, text: str) -> str:
    path = directory / "file.json"
    path.write_text(text)
    return str(path)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "not a valid JSON"),
        ("[" * 100_000, "not a valid JSON"),
        ("[]", "Expected JSON object"),
        ('{"version": "1"}', "`version` must be a number"),
        ('{"version": true}', "`version` must be a number"),
        ('{"partitions": 5}', "`partitions` must be an array"),
        ('{"partitions": [5]}', "`partitions` must be an array, each item an object"),
        ('{"partitions": [{}]}', "No such field exists: `topic`"),
        ('{"partitions": [{"topic": 5}]}', "`topic` must be a string"),
        ('{"partitions": [{"topic": "t", "partition": 1e400}]}', "`partition` must be a number"),
        ('{"partitions": [{"topic": "t", "partition": 4294967296}]}', "too large"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": 1e9}]}', "must be a number"),
        ('{"partitions": [{"topic": "t", "partition": 0, "offset": 99999999999999999999}]}', "too"),
    ],
)
def test_a_wrong_file_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        read_offsets(written(tmp_path, text))


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="Unable to read file"):
        read_json(str(tmp_path))
    (tmp_path / "binary").write_bytes(b"\xff\xfe{}")
    with pytest.raises(UserError, match="Unable to read file"):
        read_json(str(tmp_path / "binary"))


def test_a_plan_has_replicas_and_log_directories(tmp_path: Path) -> None:
    text = (
        '{"partitions": [{"topic": "t", "partition": 0, "replicas": [1, 2], '
        '"log_dirs": ["any", "/d"]}]}'
    )
    plan = read_plan(written(tmp_path, text))
    check_plan(plan)
    where = TopicPartition("t", 0)
    assert plan.replicas == {where: [1, 2]}
    assert plan.directories == {(2, where): "/d"}


@pytest.mark.parametrize(
    ("replicas", "sentence"),
    [("[]", "cannot be empty"), ("[1, 1]", "duplicate entries"), ('["1"]', "each item a number")],
)
def test_a_plan_with_wrong_replicas_is_refused(
    tmp_path: Path, replicas: str, sentence: str
) -> None:
    text = f'{{"partitions": [{{"topic": "t", "partition": 0, "replicas": {replicas}}}]}}'
    with pytest.raises(UserError, match=sentence):
        check_plan(read_plan(written(tmp_path, text)))


def test_topics_to_move_are_named_once(tmp_path: Path) -> None:
    assert read_topics(written(tmp_path, '{"topics": [{"topic": "t"}]}')) == ["t"]
    with pytest.raises(UserError, match="duplicate entries"):
        read_topics(written(tmp_path, '{"topics": [{"topic": "t"}, {"topic": "t"}]}'))
