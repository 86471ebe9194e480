"""Ways to damage the files of a stopped node; a seed determines the details."""

import shutil
from collections.abc import Callable
from pathlib import Path

from tests.cluster.damage.site import Harm, NothingToDamage, Site

from tidelog.sim.faults.damage import ROOT_CHECKPOINTS

Act = Callable[[Site], Harm]
META_PROPERTIES = "meta.properties"
LATER_SEGMENT = f"{99_999_999:020d}.log"


def _harm(site: Site, what: str, *paths: Path, may_refuse: bool = False) -> Harm:
    relative = tuple(site.relative(path) for path in paths)
    return Harm(f"{', '.join(relative)}: {what}", relative, may_refuse=may_refuse)


# -- damage to whole directories


def partition_deleted(site: Site) -> Harm:
    gone = site.partition()
    shutil.rmtree(gone)
    return _harm(site, "deleted", gone)


def all_partitions_deleted(site: Site) -> Harm:
    gone = site.partitions()
    for one in gone:
        shutil.rmtree(one)
    return _harm(site, "deleted", *gone)


def data_directory_emptied(site: Site) -> Harm:
    gone = sorted(site.data.iterdir(), key=lambda one: one.name != META_PROPERTIES)
    for one in gone:
        shutil.rmtree(one) if one.is_dir() else one.unlink()
    paths = tuple(one.name for one in gone)
    return Harm("everything deleted", paths, may_refuse=True)


def partitions_swapped(site: Site) -> Harm:
    one, other = site.partition(), site.partition()
    if one == other:
        raise NothingToDamage
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)
    return _harm(site, "swapped", one, other)


def partition_emptied(site: Site) -> Harm:
    directory = site.partition()
    for one in directory.iterdir():
        one.unlink()
    return _harm(site, "all files deleted", directory)


# -- damage to the metadata log and to the files for votes


def metadata_directory_deleted(site: Site) -> Harm:
    shutil.rmtree(site.metadata)
    return _harm(site, "deleted", site.metadata)


def metadata_log_deleted(site: Site) -> Harm:
    path = site.metadata_file("*.log")
    path.unlink()
    return _harm(site, "deleted", path)


def metadata_log_cut(site: Site) -> Harm:
    path = site.metadata_file("*.log")
    return _harm(site, f"cut to {site.cut(path)} bytes", path)


def metadata_log_emptied(site: Site) -> Harm:
    path = site.metadata_file("*.log", least=1)
    path.write_bytes(b"")
    return _harm(site, "emptied", path)


def metadata_log_flipped(site: Site) -> Harm:
    path = site.metadata_file("*.log", least=1)
    return _harm(site, f"bits flipped at {site.flip(path, 3)}", path)


def quorum_state_garbage(site: Site) -> Harm:
    path = site.metadata_file("quorum-state")
    path.write_bytes(site.garbage())
    return _harm(site, "garbage", path)


def quorum_state_gone(site: Site) -> Harm:
    path = site.metadata_file("quorum-state")
    path.unlink()
    return _harm(site, "deleted", path)


def quorum_state_nulls(site: Site) -> Harm:
    path = site.metadata_file("quorum-state")
    text = '{"clusterId":null,"leaderId":null,"leaderEpoch":null,"votedId":null,"data_version":0}'
    path.write_text(site.one_of([text, "null", "[]", "{}", '{"leaderEpoch":"x"}', "\0" * 100]))
    return _harm(site, f"is now {path.read_text()[:30]!r}", path)


def snapshot_flipped(site: Site) -> Harm:
    path = _newest_snapshot(site)
    return _harm(site, f"a bit flipped at {site.flip(path, 1)}", path)


def snapshot_deleted(site: Site) -> Harm:
    path = _newest_snapshot(site)
    path.unlink()
    return _harm(site, "deleted", path)


def _newest_snapshot(site: Site) -> Path:
    found = sorted(site.metadata.glob("*.checkpoint"))
    if not found:
        raise NothingToDamage
    return found[-1]


# -- damage to the identity of the directory


def meta_properties_gone(site: Site) -> Harm:
    path = site.data / META_PROPERTIES
    path.unlink()
    return _harm(site, "deleted", path, may_refuse=True)


def meta_properties_garbage(site: Site) -> Harm:
    path = site.data / META_PROPERTIES
    path.write_bytes(site.garbage())
    return _harm(site, "garbage", path, may_refuse=True)


# -- damage to records


def log_cut(site: Site) -> Harm:
    path = site.log()
    return _harm(site, f"cut to {site.cut(path)} bytes", path)


def log_flipped(site: Site) -> Harm:
    path = site.log()
    return _harm(site, f"bits flipped at {site.flip(path, 1 + site.rng.randrange(3))}", path)


def log_emptied(site: Site) -> Harm:
    path = site.log()
    path.write_bytes(b"")
    return _harm(site, "emptied", path)


def log_with_garbage_behind(site: Site) -> Harm:
    path = site.log()
    with path.open("ab") as file:
        file.write(site.garbage())
    return _harm(site, "garbage behind its end", path)


def middle_segment_missing(site: Site) -> Harm:
    logs = site.logs(site.partition())
    path = site.one_of(logs[1:-1])
    for suffix in site.one_of([(".log",), (".log", ".index", ".timeindex")]):
        path.with_suffix(suffix).unlink(missing_ok=True)
    return _harm(site, "deleted", path)


def first_segment_missing(site: Site) -> Harm:
    logs = site.logs(site.partition())
    if len(logs) < 2:
        raise NothingToDamage
    for suffix in (".log", ".index", ".timeindex"):
        logs[0].with_suffix(suffix).unlink(missing_ok=True)
    return _harm(site, "deleted", logs[0])


def later_empty_segment(site: Site) -> Harm:
    path = site.partition() / LATER_SEGMENT
    path.write_bytes(b"")
    return _harm(site, "an empty segment planted", path)


def segment_copied_behind(site: Site) -> Harm:
    log = site.log()
    path = log.with_name(LATER_SEGMENT)
    shutil.copy(log, path)
    return _harm(site, f"a copy of {log.name} planted", path)


def segments_swapped(site: Site) -> Harm:
    logs = site.logs(site.partition())
    if len(logs) < 2:
        raise NothingToDamage
    one, other = site.rng.sample(logs, 2)
    _swap(one, other)
    return _harm(site, "swapped", one, other)


def segments_swapped_across_partitions(site: Site) -> Harm:
    one, other = site.log(), site.log()
    if one.parent == other.parent or _could_be(one, other):
        raise NothingToDamage
    _swap(one, other)
    return _harm(site, "swapped", one, other)


def segment_replaced_by_another(site: Site) -> Harm:
    one, other = site.log(), site.log()
    if one == other or _could_be(one, other):
        raise NothingToDamage
    shutil.copy(other, one)
    return _harm(site, f"replaced by {site.relative(other)}", one)


# -- damage to files that are derived from records


def epochs_garbage(site: Site) -> Harm:
    path = site.file_of("leader-epoch-checkpoint")
    path.write_bytes(site.garbage())
    return _harm(site, "garbage", path)


def index_without_a_log(site: Site) -> Harm:
    path = site.partition() / f"{77_777_777:020d}.index"
    path.write_bytes(site.garbage())
    return _harm(site, "an index without a log planted", path)


def index_flipped(site: Site) -> Harm:
    path = site.file_of("*.index", least=1)
    return _harm(site, f"bits flipped at {site.flip(path, 1 + site.rng.randrange(3))}", path)


def index_sign_bits_set(site: Site) -> Harm:
    path = site.file_of("*.index", "*.timeindex", least=1)
    content = bytearray(path.read_bytes())
    for place in range(0, len(content), 4):
        content[place] |= 0x80
    path.write_bytes(content)
    return _harm(site, "the sign bits of all entries set", path)


def time_index_flipped(site: Site) -> Harm:
    path = site.file_of("*.timeindex", least=1)
    return _harm(site, f"bits flipped at {site.flip(path, 1 + site.rng.randrange(3))}", path)


def transaction_index_planted(site: Site) -> Harm:
    path = site.log().with_suffix(".txnindex")
    path.write_bytes(site.garbage())
    return _harm(site, "garbage", path)


def producer_snapshot_flipped(site: Site) -> Harm:
    path = site.file_of("*.snapshot", least=1)
    return _harm(site, f"bits flipped at {site.flip(path, 2)}", path)


def indexes_swapped(site: Site) -> Harm:
    suffix = site.one_of(["*.index", "*.timeindex"])
    one, other = site.file_of(suffix, least=1), site.file_of(suffix, least=1)
    if one == other or one.read_bytes() == other.read_bytes():
        raise NothingToDamage
    _swap(one, other)
    return _harm(site, "swapped", one, other)


# -- damage to small files


def root_checkpoint_garbage(site: Site) -> Harm:
    path = site.data / site.one_of(ROOT_CHECKPOINTS)
    path.write_bytes(site.garbage())
    return _harm(site, "garbage", path)


def partition_metadata_garbage(site: Site) -> Harm:
    path = site.file_of("partition.metadata")
    path.write_bytes(site.garbage())
    return _harm(site, "garbage", path)


def partition_metadata_empty(site: Site) -> Harm:
    path = site.file_of("partition.metadata")
    path.write_bytes(b"")
    return _harm(site, "emptied", path)


def partition_metadata_of_another_topic(site: Site) -> Harm:
    path = site.file_of("partition.metadata")
    path.write_text("version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAYQ\n")
    return _harm(site, "names another topic", path)


def strays_planted(site: Site) -> Harm:
    """Add files and directories that Kafka never makes; the node need not report them."""
    where = site.one_of([site.data, site.metadata, site.partition()])
    (where / "notes.txt").write_bytes(site.garbage())
    (where / "lost+found").mkdir(exist_ok=True)
    (where / "0.log").write_bytes(site.garbage())
    (where / ("x" * 20 + ".log")).write_bytes(site.garbage())
    return Harm(f"{where.name}: strays planted", (site.relative(where),), must_be_reported=False)


def stray_partition_planted(site: Site) -> Harm:
    path = site.data / "forgotten-0"
    path.mkdir(exist_ok=True)
    (path / f"{0:020d}.log").write_bytes(site.garbage())
    return _harm(site, "a partition of no topic planted", path)


# -- directories in place of files


def directory_for_a_file(site: Site) -> Harm:
    path = site.any_file()
    path.unlink()
    path.mkdir()
    (path / "inside").write_bytes(b"x")
    return _harm(site, "a directory in its place", path, may_refuse=path.name == META_PROPERTIES)


def file_for_a_directory(site: Site) -> Harm:
    path = site.one_of([*site.partitions(), site.metadata])
    shutil.rmtree(path)
    path.write_bytes(site.garbage())
    return _harm(site, "a file in its place", path)


def link_to_nowhere(site: Site) -> Harm:
    path = site.any_file()
    path.unlink()
    path.symlink_to("nowhere")
    return _harm(site, "a link to nowhere", path, may_refuse=path.name == META_PROPERTIES)


# -- damage to any file


def any_flipped(site: Site) -> Harm:
    path = site.any_file(least=1)
    bits = site.one_of([1, 1, 2, 8, 64])
    flipped = site.flip(path, bits)
    return _any(site, path, f"{bits} bits flipped at {flipped[:5]}")


def any_cut(site: Site) -> Harm:
    path = site.any_file(least=1)
    return _any(site, path, f"cut to {site.cut(path)} bytes")


def any_emptied(site: Site) -> Harm:
    path = site.any_file(least=1)
    path.write_bytes(b"")
    return _any(site, path, "emptied")


def any_deleted(site: Site) -> Harm:
    path = site.any_file()
    path.unlink()
    return _any(site, path, "deleted")


def any_duplicated(site: Site) -> Harm:
    """Replace a file with a copy of another file in the same directory."""
    one = site.any_file()
    other = site.one_of([path for path in sorted(one.parent.iterdir()) if path.is_file()])
    if one.read_bytes() == other.read_bytes() or other.name == ".lock":
        raise NothingToDamage
    shutil.copy(one, other)
    return _any(site, other, f"replaced by a copy of {one.name}")


def any_swapped(site: Site) -> Harm:
    one, other = site.any_file(), site.any_file()
    if one.read_bytes() == other.read_bytes() or _could_be(one, other):
        raise NothingToDamage
    _swap(one, other)
    names = {one.name, other.name}
    return _harm(site, "swapped", one, other, may_refuse=META_PROPERTIES in names)


def _any(site: Site, path: Path, what: str) -> Harm:
    return _harm(site, what, path, may_refuse=path.name == META_PROPERTIES)


def _could_be(one: Path, other: Path) -> bool:
    """Whether a node may fail to notice that two files were swapped.

    A node cannot notice a swap of two segments with equal names, because a batch does not name its
    partition.
    """
    return one.name == other.name and one.suffix == ".log"


def _swap(one: Path, other: Path) -> None:
    content = one.read_bytes()
    shutil.copy(other, one)
    other.write_bytes(content)


KINDS: dict[str, Act] = {
    act.__name__.replace("_", " "): act
    for act in (
        partition_deleted,
        all_partitions_deleted,
        data_directory_emptied,
        partitions_swapped,
        partition_emptied,
        metadata_directory_deleted,
        metadata_log_deleted,
        metadata_log_cut,
        metadata_log_emptied,
        metadata_log_flipped,
        quorum_state_garbage,
        quorum_state_gone,
        quorum_state_nulls,
        snapshot_flipped,
        snapshot_deleted,
        meta_properties_gone,
        meta_properties_garbage,
        log_cut,
        log_flipped,
        log_emptied,
        log_with_garbage_behind,
        middle_segment_missing,
        first_segment_missing,
        later_empty_segment,
        segment_copied_behind,
        segments_swapped,
        segments_swapped_across_partitions,
        segment_replaced_by_another,
        epochs_garbage,
        index_without_a_log,
        index_flipped,
        index_sign_bits_set,
        time_index_flipped,
        transaction_index_planted,
        producer_snapshot_flipped,
        indexes_swapped,
        root_checkpoint_garbage,
        partition_metadata_garbage,
        partition_metadata_empty,
        partition_metadata_of_another_topic,
        strays_planted,
        stray_partition_planted,
        directory_for_a_file,
        file_for_a_directory,
        link_to_nowhere,
        any_flipped,
        any_cut,
        any_emptied,
        any_deleted,
        any_duplicated,
        any_swapped,
    )
}
GENERIC = [name for name in KINDS if name.startswith("any ")]
