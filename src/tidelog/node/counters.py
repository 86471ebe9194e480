"""What a node has counted since it started: plain numbers, read when somebody asks for metrics."""


class Counters:
    __slots__ = (
        "election_ms",
        "elections",
        "events_lost",
        "events_written",
        "failed_isr_updates",
        "isr_expands",
        "isr_shrinks",
        "unclean_elections",
    )

    def __init__(self) -> None:
        self.isr_shrinks = 0
        """That this node asked for as leader, and got."""
        self.isr_expands = 0
        self.failed_isr_updates = 0
        self.elections = 0
        """That this node decided on as active controller."""
        self.election_ms = 0
        """From each of those decisions until it was committed, added up."""
        self.unclean_elections = 0
        self.events_written = 0
        self.events_lost = 0
