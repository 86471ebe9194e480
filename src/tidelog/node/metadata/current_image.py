"""The committed metadata that this node has applied, and the parts that follow its changes."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from tidelog.controller.image.image import ClusterImage


class ImageChange(NamedTuple):
    old: ClusterImage
    new: ClusterImage
    by_records: bool
    """True if committed records made the change, False if a snapshot replaced the image."""


Subscriber: TypeAlias = Callable[[ImageChange], None]


class CurrentImage:
    """The only holder of the image. All other parts read the image from here.

    Invariant: the image contains no open metadata transaction.
    """

    __slots__ = ("_subscribers", "image")

    def __init__(self) -> None:
        self.image = ClusterImage()
        self._subscribers: tuple[Subscriber, ...] = ()

    def subscribe(self, *subscribers: Subscriber) -> None:
        """Set the parts that are notified of every change, in this order."""
        self._subscribers = subscribers

    def change_to(self, new: ClusterImage, *, by_records: bool) -> None:
        change = ImageChange(self.image, new, by_records)
        self.image = new
        for subscriber in self._subscribers:
            subscriber(change)
