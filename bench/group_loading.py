"""Measure the CPU time in which a coordinator loads a group with many members and offsets.

Run with `python bench/group_loading.py`. The time covers what a load job does for each batch: it
parses the records, decodes them and replays them.
"""

from argparse import ArgumentParser
from time import process_time
from uuid import UUID

from tidelog.config.group_settings import GroupSettings
from tidelog.coordination.groups.machine import GroupMachine
from tidelog.coordination.groups.shard_state import GroupShardState
from tidelog.coordination.records import (
    GroupMetadataKey,
    GroupMetadataValue,
    MemberMetadata,
    OffsetCommitKey,
    OffsetCommitValue,
    encode_key,
    encode_value,
)
from tidelog.coordination.runtime.decision import LogRecord, RecordOrigin
from tidelog.protocol.records.records import Record, build_batch, iterate_records

GROUP = "readers"
PARTITIONS_PER_TOPIC = 100
RECORDS_PER_BATCH = 50
LARGEST_BATCH = 1_048_588


class NoDice:
    """A load draws no random numbers."""

    def below(self, bound: int) -> int:
        raise AssertionError

    def uuid(self) -> UUID:
        raise AssertionError


def group_of(members: int) -> LogRecord:
    member = MemberMetadata(
        member_id="",
        client_id="reader",
        client_host="/127.0.0.1",
        session_timeout=45_000,
        rebalance_timeout=300_000,
        subscription=b"\0\0" + bytes(100),
        assignment=bytes(200),
    )
    value = GroupMetadataValue(
        protocol_type="consumer",
        generation=7,
        protocol="range",
        leader="member-0",
        members=tuple(
            MemberMetadata(
                member_id=f"member-{number}",
                client_id=member.client_id,
                client_host=member.client_host,
                session_timeout=member.session_timeout,
                rebalance_timeout=member.rebalance_timeout,
                subscription=member.subscription,
                assignment=member.assignment,
            )
            for number in range(members)
        ),
    )
    return encode_key(GroupMetadataKey(GROUP)), encode_value(value)


def offset_of(number: int) -> LogRecord:
    topic, partition = divmod(number, PARTITIONS_PER_TOPIC)
    value = OffsetCommitValue(offset=number, metadata="", commit_timestamp=1_700_000_000_000)
    return encode_key(OffsetCommitKey(GROUP, f"topic-{topic}", partition)), encode_value(value)


def batches_of(records: list[LogRecord]) -> list[bytes]:
    return [
        build_batch([Record(*record, 0) for record in records[first : first + RECORDS_PER_BATCH]])
        for first in range(0, len(records), RECORDS_PER_BATCH)
    ]


def load(batches: list[bytes]) -> tuple[float, GroupMachine]:
    machine = GroupMachine(GroupShardState(GroupSettings(), NoDice(), lambda: LARGEST_BATCH))
    began = process_time()
    for batch in batches:
        for record in iterate_records(batch):
            decoded = machine.decode(record.key or b"", record.value)
            if decoded is not None:
                machine.replay(decoded, RecordOrigin(record.offset))
    return process_time() - began, machine


def main() -> None:
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--members", type=int, default=100)
    parser.add_argument("--offsets", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=5)
    asked = parser.parse_args()
    batches = batches_of([group_of(asked.members), *map(offset_of, range(asked.offsets))])
    seconds = []
    for _ in range(asked.rounds):
        took, machine = load(batches)
        seconds.append(took)
        assert sum(1 for _ in machine.shard.offsets.of_group(GROUP)) == asked.offsets
    print(
        f"{asked.members} members, {asked.offsets} offsets: "
        f"{min(seconds):.2f} s of CPU time at best, {max(seconds):.2f} s at worst"
    )


if __name__ == "__main__":
    main()
