"""A single controller with damaged files has all of its metadata or reports the damage (F57)."""

import errno
from copy import deepcopy
from functools import cache
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.sim.messages import create_topic
from tests.sim.metadata_damage import KINDS, damage, files
from tests.unit.node.bench import Bench, formatted

from tidelog.log.names import META_PROPERTIES, META_PROPERTIES_COPY
from tidelog.node.metadata import metadata_mark
from tidelog.node.metadata.metadata_log import UnusableMetadata
from tidelog.node.metadata.metadata_mark import MetadataLogState
from tidelog.node.metadata.snapshot_files import DIRECTORY
from tidelog.protocol.fetch import SnapshotId
from tidelog.replication.quorum.state import LogEnd
from tidelog.sim.machines.disk import SimDisk

TOPICS = [f"topic-{number}" for number in range(12)]
SNAPSHOTS = {
    "metadata_log_max_record_bytes_between_snapshots": "1500",
    "metadata_max_retention_bytes": "3000",
}


def used(cleanly: bool, with_snapshots: bool = False) -> SimDisk:
    return deepcopy(_used(cleanly, with_snapshots))


@cache
def _used(cleanly: bool, with_snapshots: bool) -> SimDisk:
    node = Bench(1, formatted(), **(SNAPSHOTS if with_snapshots else {}))
    for name in TOPICS:
        node.ask(create_topic(name))
    if cleanly:
        node.shutdown()
        while node.stopped is None:
            node.flush()
            node.pass_time(100)
    node.disk.kill()
    return node.disk


def outcome(disk: SimDisk, seed: int = 7) -> Bench | str:
    """Start a node; `seed` gives its incarnation, which no two runs of a broker share."""
    try:
        return Bench(1, disk, seed=seed)
    except UnusableMetadata as failure:
        return str(failure)


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(KINDS), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_f57_the_only_controller_has_everything_or_says_what_is_wrong(
    kind: str, cleanly: bool, with_snapshots: bool, seed: int
) -> None:
    disk = used(cleanly, with_snapshots)
    # Do not swap metadata-log-mark with a log file, because without the mark a damaged end counts
    # as a torn write.
    is_for_two = kind in ("swap", "copy over")
    done = damage(
        disk, kind, Random(seed), lambda path: not is_for_two or path != metadata_mark.PATH
    )
    before = {path: disk.read_file(path) for path in files(disk) if disk.exists(path)}

    found = outcome(disk)

    if isinstance(found, Bench):
        assert found.stopped is None, (done, found.stopped)
        assert set(TOPICS) <= set(found.node.image.topics), done
    else:
        assert found.startswith("the metadata log in "), done
        assert "restore the directory from a copy" in found
        after = {path: disk.read_file(path) for path in before}
        assert after == before, f"{done}: something was changed"


@pytest.mark.parametrize("cleanly", [True, False])
def test_f57_every_bit_of_a_small_log_counts(cleanly: bool) -> None:
    """The test samples bits of the whole file: offsets, epochs, checksums and records."""
    path = f"{DIRECTORY}/{0:020d}.log"
    size = used(cleanly).size(path)
    for bit in range(0, size * 8, 61):
        disk = used(cleanly)
        disk.flip_bit(path, bit)
        assert isinstance(outcome(disk), str), f"bit {bit} of {size * 8} was not noticed"


@pytest.mark.parametrize("name", ["quorum-state", "partition.metadata", "leader-epoch-checkpoint"])
def test_f59_a_file_beside_the_log_that_is_gone_or_garbage_is_made_anew(name: str) -> None:
    for content in (None, b"", b"\xff" * 40):
        disk = used(cleanly=False)
        disk.remove(f"{DIRECTORY}/{name}")
        if content is not None:
            disk.write_file(f"{DIRECTORY}/{name}", content)
        found = outcome(disk)
        assert isinstance(found, Bench), found
        assert set(TOPICS) <= set(found.node.image.topics)


def test_f57_a_lost_metadata_directory_is_not_a_new_cluster() -> None:
    """This holds even if the mark is also lost, as long as there are partitions."""
    for also in ([], [metadata_mark.PATH, "recovery-point-offset-checkpoint"]):
        disk = used(cleanly=True)
        disk.remove_tree(DIRECTORY)
        for path in also:
            disk.remove(path)
        found = outcome(disk)
        assert isinstance(found, str)
        assert "is gone" in found
        assert disk.exists("topic-0-0")


def test_f57_a_snapshot_that_is_lost_after_the_mark_was_is_reported(
    caplog: pytest.LogCaptureFixture,
) -> None:
    disk = used(cleanly=False, with_snapshots=True)
    disk.write_file(metadata_mark.PATH, b"garbage")
    assert isinstance(outcome(disk), Bench)
    disk.kill()
    oldest = min(path for path in files(disk) if path.endswith(".checkpoint"))
    disk.remove(oldest)

    assert isinstance(outcome(disk, seed=8), Bench)

    assert f"the snapshot {oldest} is missing" in caplog.text


def test_f57_an_old_snapshot_that_cannot_be_read_does_not_keep_a_node_from_starting(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = used(cleanly=False, with_snapshots=True)
    disk.write_file(metadata_mark.PATH, b"garbage")
    oldest = f"{DIRECTORY}/{1:020d}-{1:010d}.checkpoint"
    disk.write_file(oldest, b"on a bad sector")
    read_file = SimDisk.read_file

    def read(self: SimDisk, path: str) -> bytes:
        if path == oldest:
            raise OSError(errno.EIO, "bad sector")
        return read_file(self, path)

    monkeypatch.setattr(SimDisk, "read_file", read)

    assert isinstance(outcome(disk), Bench)
    assert f"the snapshot {oldest} cannot be read" in caplog.text


def test_a_directory_of_another_version_without_a_mark_is_opened() -> None:
    disk = used(cleanly=True)
    disk.remove(metadata_mark.PATH)
    disk.remove(META_PROPERTIES_COPY)
    found = outcome(disk)
    assert isinstance(found, Bench)
    assert set(TOPICS) <= set(found.node.image.topics)
    assert disk.exists(metadata_mark.PATH)
    assert disk.exists(META_PROPERTIES)


@given(
    st.builds(
        MetadataLogState,
        st.builds(LogEnd, st.integers(-1, 2**31 - 1), st.integers(0, 2**63 - 1)),
        st.booleans(),
        st.integers(-1, 2**31 - 1),
        st.lists(
            st.tuples(
                st.builds(SnapshotId, st.integers(0, 2**63 - 1), st.integers(0, 2**31 - 1)),
                st.integers(0, 2**32 - 1),
            ),
            max_size=3,
        ).map(tuple),
    ),
    st.data(),
)
def test_f57_the_mark_is_read_as_it_was_written_or_not_at_all(
    mark: MetadataLogState, data: st.DataObject
) -> None:
    content = bytearray(metadata_mark.encode(mark))
    assert metadata_mark.decode(bytes(content)) == mark
    bit = data.draw(st.integers(0, len(content) * 8 - 1))
    content[bit // 8] ^= 1 << bit % 8
    assert metadata_mark.decode(bytes(content)) is None


@given(st.binary(max_size=200))
def test_f57_garbage_is_no_mark(content: bytes) -> None:
    assert metadata_mark.decode(content) is None
