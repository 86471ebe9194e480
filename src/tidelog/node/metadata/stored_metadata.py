"""What the quorum needs of the metadata on this node's disk."""

from typing import NamedTuple

from tidelog.controller.image.image import ClusterImage
from tidelog.model.disk import Disk
from tidelog.node.metadata.metadata_log import MetadataLog
from tidelog.node.metadata.snapshot_schedule import SnapshotTaking


class StoredMetadata(NamedTuple):
    disk: Disk
    """The disk with the metadata log and the file `quorum-state`."""
    log: MetadataLog
    snapshots: SnapshotTaking
    image: ClusterImage
    """The image in the newest valid snapshot; an empty image if there is no snapshot."""
