"""The file quorum-state: a voter's epoch and vote, in Kafka's JSON format."""

import json
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidelog.node.quorum import quorum_state
from tidelog.replication.quorum.state import QuorumState, ReplicaKey
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

DIRECTORY = UUID("b1a2c3d4-0000-4000-8000-00000000abcd")


def disk(content: bytes | None = None) -> SimDisk:
    made = SimDisk()
    made.make_directory("__cluster_metadata-0")
    if content is not None:
        made.write_file(quorum_state.PATH, content)
    return made


replicas = st.builds(
    ReplicaKey, st.integers(0, 2**31 - 1), st.none() | st.uuids().filter(lambda uuid: uuid.int)
)


@given(
    st.builds(
        QuorumState,
        epoch=st.integers(0, 2**31 - 1),
        leader=st.integers(-1, 2**31 - 1),
        voted=st.none() | replicas,
    )
)
def test_what_is_saved_is_loaded(state: QuorumState) -> None:
    where = disk()
    quorum_state.save(where, state)
    assert quorum_state.load(where) == (state, False)


def test_it_is_synced_when_save_returns() -> None:
    for seed in range(20):
        where = disk()
        where.sync_directory("__cluster_metadata-0")
        state = QuorumState(3, 2, ReplicaKey(1, DIRECTORY))
        quorum_state.save(where, state)
        where.crash(SeededDice(seed))
        assert quorum_state.load(where) == (state, False)


def test_the_file_is_the_one_that_kafka_writes() -> None:
    where = disk()
    quorum_state.save(where, QuorumState(7, -1, ReplicaKey(2, DIRECTORY)))

    content = json.loads(where.read_file(quorum_state.PATH))
    assert content.pop("checksum") > 0, "ours, which Kafka does not look at"
    assert content == {
        "leaderId": -1,
        "leaderEpoch": 7,
        "votedId": 2,
        "votedDirectoryId": "saLD1AAAQACAAAAAAACrzQ",
        "data_version": 1,
    }


def test_kafkas_older_format_without_directories_is_read() -> None:
    content = b'{"clusterId":"","leaderId":3,"leaderEpoch":5,"votedId":-1,"appliedOffset":0,'
    content += b'"currentVoters":[],"data_version":0}'
    assert quorum_state.load(disk(content)) == (QuorumState(5, 3, None), False)


@pytest.mark.parametrize(
    "content",
    [
        None,
        b"",
        b"\0" * 100,
        b"{",
        b"[]",
        b"3",
        b"null",
        b"{}",
        b'{"leaderEpoch":"x","leaderId":1}',
        b'{"leaderEpoch":1}',
        b'{"leaderEpoch":null,"leaderId":1}',
        b'{"leaderEpoch":1,"leaderId":1,"votedId":2,"votedDirectoryId":"!"}',
        b'{"leaderEpoch":1,"leaderId":1,"votedId":2,"votedDirectoryId":7}',
        b'\xff\xfe{"leaderEpoch":1,"leaderId":1}',
        b'{"leaderEpoch":' + b"9" * 5_000 + b',"leaderId":1}',
        b'{"leaderEpoch":-1,"leaderId":1}',
        b'{"leaderEpoch":2147483647,"leaderId":1}',
        b'{"leaderEpoch":1,"leaderId":-7}',
        b'{"leaderEpoch":1.5,"leaderId":1}',
        b'{"leaderEpoch":true,"leaderId":1}',
        b'{"leaderEpoch":1,"leaderId":1,"votedId":null}',
        b'{"leaderEpoch":1,"leaderId":1,"checksum":1}',
        b"[" * 100_000,
    ],
)
def test_f59_what_cannot_be_true_is_not_believed(content: bytes | None) -> None:
    assert quorum_state.load(disk(content)) == (None, content is not None)


@given(st.binary(max_size=100))
def test_f59_garbage_is_not_believed(content: bytes) -> None:
    assert quorum_state.load(disk(content)) == (None, True)


@given(st.data())
def test_f59_a_changed_bit_or_a_cut_is_never_another_promise(data: st.DataObject) -> None:
    state = QuorumState(1234, 2, ReplicaKey(1, DIRECTORY))
    where = disk()
    quorum_state.save(where, state)
    content = bytearray(where.read_file(quorum_state.PATH))
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    assert quorum_state.load(disk(bytes(content))).state in (None, state)
    cut = data.draw(st.integers(0, len(content) - 1))
    assert quorum_state.load(disk(bytes(content[:cut]))).state is None
