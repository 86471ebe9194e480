"""The subscribers of a topic in the order of their load, while partitions move between them.

The order is kept in one list. A range at its start holds the least loaded members, and a range at
its end the most loaded ones. Each range is visited in turn, and grows when all of it was visited.
"""


class LoadOrder:
    def __init__(self, sizes: list[int]) -> None:
        self._sizes = sizes
        """The number of partitions of each member; the caller changes it as partitions move."""
        self._sorted: list[int] = []
        self._least_end = self._least_count = self._next_least = 0
        self._most_start = self._most_end = self._most_count = self._next_most = 0

    def start(self, members: list[int]) -> int:
        """Start with these members; returns the difference between the largest and the smallest."""
        self._sorted = sorted(members, key=lambda index: (self._sizes[index], index))
        smallest, largest = self._sizes[self._sorted[0]], self._sizes[self._sorted[-1]]
        self._least_end = self._next_least = 0
        self._least_count = smallest - 1
        self._most_start = self._most_end = len(self._sorted)
        self._most_count = largest + 1
        self._next_most = len(self._sorted) - 1
        return largest - smallest

    def next_least_loaded(self) -> int:
        """The member that receives the next partition."""
        if self._next_least >= self._least_end:
            self._least_count += 1
            while (
                self._least_end < len(self._sorted)
                and self._sizes[self._sorted[self._least_end]] == self._least_count
            ):
                self._least_end += 1
            self._next_least = 0
        self._next_least += 1
        return self._sorted[self._next_least - 1]

    def next_most_loaded(self) -> int | None:
        """The member that gives up the next partition; None if no member is left."""
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_count = self._sizes[self._sorted[self._most_start - 1]]
            else:
                self._most_count -= 1
            while (
                self._most_start > 0
                and self._sizes[self._sorted[self._most_start - 1]] == self._most_count
            ):
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        self._next_most -= 1
        return self._sorted[self._next_most + 1]

    def exclude_most_loaded(self) -> None:
        """Do not return the last most loaded member again: it has no partition to give up."""
        last, end = self._next_most + 1, self._most_end - 1
        self._sorted[last], self._sorted[end] = self._sorted[end], self._sorted[last]
        self._most_end = end

    @property
    def is_balanced(self) -> bool:
        return self._most_count - self._least_count <= 1
