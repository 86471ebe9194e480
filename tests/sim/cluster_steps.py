"""Checks whether a topic was created, and whether the nodes of a simulated cluster agree."""

from tidelog.model.errors import ErrorCode
from tidelog.sim.machines.cluster import SimCluster


def created(answer: object) -> bool:
    return answer is not None and answer.topics[0].error_code is ErrorCode.none


def images_agree(cluster: SimCluster) -> bool:
    """Whether all running nodes are at the same offset; if so, their images must be equal."""
    images = [host.node.image for host in cluster.up]
    if len({image.offset for image in images}) > 1:
        return False
    assert all(image == images[0] for image in images), "same offset, different images"
    return True
