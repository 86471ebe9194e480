"""Files and directories of a simulated disk, with their durable state."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from tidelog.model.dice import Dice

if TYPE_CHECKING:
    from tidelog.sim.machines.disk import SimFile

PAGE = 4096


class Inode:
    """A file's cached bytes, and the durable bytes that unsynced writes have replaced."""

    __slots__ = ("content", "durable_size", "handle", "hidden", "uncached")

    def __init__(self, content: bytes = b"") -> None:
        self.content = bytearray(content)
        self.durable_size = len(content)
        self.hidden: dict[int, bytes] = {}  # durable bytes by page, which a crash may restore
        self.uncached: set[int] = set()  # pages that are on disk but not in the page cache
        self.handle: SimFile | None = None

    def dirty(self, start: int, end: int) -> None:
        """Save the durable bytes of these pages before they change."""
        for page in range(start // PAGE, (max(end, start + 1) - 1) // PAGE + 1):
            self.uncached.discard(page)
            if page not in self.hidden:
                first = page * PAGE
                self.hidden[page] = bytes(
                    self.content[first : min(first + PAGE, self.durable_size)]
                )

    def evict(self, dice: Dice) -> None:
        """Drop a random number of the first pages from the page cache: none, some or all."""
        self.evict_first(_between(dice, 0, len(self.content)))

    def evict_first(self, size: int) -> None:
        """Drop the synced pages among the first `size` bytes from the page cache."""
        if size:
            self.uncached = set(_pages(0, size)).difference(self.hidden)

    def first_uncached(self, start: int, end: int) -> int | None:
        """The first page of these bytes that is not in the page cache."""
        return next((page for page in _pages(start, end) if page in self.uncached), None)

    def load(self, start: int, end: int) -> int:
        """Read pages from the disk into the page cache; returns how many were not there."""
        before = len(self.uncached)
        self.uncached.difference_update(_pages(start, end))
        return before - len(self.uncached)

    def sync(self) -> None:
        self.hidden.clear()
        self.durable_size = len(self.content)

    def survive(self, dice: Dice) -> "Inode":
        """The file that a crash leaves: each unsynced page is kept, lost or torn."""
        size = _between(dice, self.durable_size, len(self.content))
        content = self.content[:size].ljust(size, b"\0")
        for page in sorted(self.hidden):
            first = page * PAGE
            if first >= size:
                continue
            written = bytes(content[first : first + PAGE])
            lost = self.hidden[page][: len(written)].ljust(len(written), b"\0")
            torn = _between(dice, 0, len(written))
            content[first : first + PAGE] = written[:torn] + lost[torn:]
        found = Inode(bytes(content))
        found.uncached.update(_pages(0, size))
        return found


def _pages(start: int, end: int) -> range:
    """The pages of these bytes; one page if there are none."""
    return range(start // PAGE, (max(end, start + 1) - 1) // PAGE + 1)


def _between(dice: Dice, one: int, other: int) -> int:
    """The first bound, the second bound or a value between them, with equal probability."""
    low, high = min(one, other), max(one, other)
    match dice.below(3):
        case 0:
            return one
        case 1:
            return other
        case _:
            return low + dice.below(high - low + 1)


class Directory:
    """The current names in a directory, its durable names, and the changes between them."""

    __slots__ = ("durable", "entries", "steps")

    def __init__(self, entries: "dict[str, Node] | None" = None) -> None:
        self.entries: dict[str, Node] = entries or {}
        self.durable: dict[str, Node] = dict(self.entries)
        self.steps: list[Callable[[dict[str, Node]], None]] = []

    def change(self, step: "Callable[[dict[str, Node]], None]") -> None:
        step(self.entries)
        self.steps.append(step)

    def sync(self) -> None:
        self.durable = dict(self.entries)
        self.steps.clear()

    def survive(self, dice: Dice) -> "Directory":
        entries = dict(self.durable)
        for step in self.steps[: dice.below(len(self.steps) + 1)]:
            step(entries)
        return Directory({name: entries[name].survive(dice) for name in sorted(entries)})


Node = Inode | Directory


def sync_below(directory: Directory) -> None:
    directory.sync()
    for node in directory.entries.values():
        if isinstance(node, Directory):
            sync_below(node)
        else:
            node.sync()


def paths_below(directory: Directory, prefix: str) -> Iterator[str]:
    for name, node in directory.entries.items():
        if isinstance(node, Directory):
            yield from paths_below(node, f"{prefix}{name}/")
        else:
            yield f"{prefix}{name}"


def inodes_below(directory: Directory) -> Iterator[Inode]:
    for node in directory.entries.values():
        if isinstance(node, Directory):
            yield from inodes_below(node)
        else:
            yield node
