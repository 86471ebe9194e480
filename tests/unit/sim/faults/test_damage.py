"""Damage to a simulated disk: which files change, and whether a node can detect the damage."""

import pytest

from tidelog.model.ids import METADATA_TOPIC
from tidelog.sim.faults.damage import METADATA, damage, is_visible, names_of
from tidelog.sim.machines.dice import SeededDice
from tidelog.sim.machines.disk import SimDisk

LOG = "t-0/00000000000000000000.log"
LATER = "t-0/00000000000000000010.log"
POINTS = "recovery-point-offset-checkpoint"
SNAPSHOTS = [f"{METADATA}/{end:020d}-0000000001.checkpoint" for end in (5, 9)]
SOUND = {
    LOG: b"records",
    LATER: b"more",
    "t-0/00000000000000000000.index": b"12345678",
    "t-0/leader-epoch-checkpoint": b"0\n1\n3 0\n",
    "t-0/partition.metadata": b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAQ\n",
    POINTS: f"0\n2\nt 0 10\n{METADATA_TOPIC} 0 8\n".encode(),
    ".kafka_cleanshutdown": b"{}",
    f"{METADATA}/quorum-state": b'{"leaderId":1,"leaderEpoch":2,"votedId":-1}',
    **dict.fromkeys(SNAPSHOTS, b"image"),
    f"{METADATA}/00000000000000000000.log": b"metadata",
    f"{METADATA}/00000000000000000000.index": b"12345678",
    f"{METADATA}/00000000000000000007.log": b"later",
    f"{METADATA}/00000000000000000007.index": b"12345678",
}


def shows(path: str, content: bytes | None, *, was_clean: bool = True) -> bool:
    after = {name: was for name, was in SOUND.items() if name != path}
    if content is not None:
        after[path] = content
    return is_visible((path,), SOUND, after, was_clean=was_clean)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (LOG, b"recards"),
        (LATER, None),
        ("t-0/00000000000000000000.index", None),
        ("t-0/leader-epoch-checkpoint", b"0\n2\n3 0\n"),
        ("t-0/partition.metadata", b""),
        (POINTS, b"0\n1\nt 0 1"),
        (f"{METADATA}/quorum-state", b"null"),
        (SNAPSHOTS[-1], b"imagf"),
        ("t-0/00000000000099999999.log", b""),
    ],
)
def test_what_checksums_and_forms_show_after_a_clean_stop(path: str, content: bytes | None) -> None:
    assert shows(path, content)


@pytest.mark.parametrize(
    ("path", "content"),
    [
        (LOG, SOUND[LOG]),
        ("t-0/00000000000000000000.index", b"12345679"),
        ("t-0/leader-epoch-checkpoint", b"0\n1\n4 0\n"),
        (POINTS, b"0\n1\nt 0 11\n"),
        (".kafka_cleanshutdown", None),
        (f"{METADATA}/quorum-state", b'{"leaderId":1,"leaderEpoch":3,"votedId":-1}'),
        (SNAPSHOTS[0], b"imagf"),
    ],
)
def test_what_nothing_shows(path: str, content: bytes | None) -> None:
    assert not shows(path, content)


def test_after_a_crash_only_what_was_synced_is_known_to_have_been_otherwise() -> None:
    assert shows(LOG, b"", was_clean=False)
    assert not shows(LATER, b"", was_clean=False)


def test_a_missing_index_of_the_metadata_log_shows_where_no_start_scans_its_segment() -> None:
    sealed, scanned = (f"{METADATA}/{base:020d}.index" for base in (0, 7))
    assert shows(sealed, None)
    assert not shows(scanned, None)


def test_a_report_names_the_partition_or_the_file_of_the_root() -> None:
    assert names_of((LOG, POINTS)) == {"t-0", POINTS}
    assert "metadata log" in names_of((SNAPSHOTS[0],))


def test_damage_changes_what_it_says_and_outlives_a_power_loss() -> None:
    for seed in range(200):
        disk, dice = SimDisk(), SeededDice(seed)
        for directory in ("t-0", METADATA):
            disk.make_directory(directory)
        for path, content in SOUND.items():
            disk.write_file(path, content)
        harm = damage(disk, dice)
        disk.crash(dice)
        after = {path: disk.read_file(path) for path in disk.files()}
        changed = {path for path in {*SOUND, *after} if SOUND.get(path) != after.get(path)}
        assert changed <= set(() if harm is None else harm.paths)
