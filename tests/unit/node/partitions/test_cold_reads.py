"""One job reads a window of a file for all waiting requests. Connections and nodes have limits."""

from tidelog.model.disk import FileSlice
from tidelog.model.events import Ran
from tidelog.model.outbound import Cancel, Outbound, Run
from tidelog.node.clock import Clock
from tidelog.node.jobs import Jobs
from tidelog.node.partitions.cold_reads import (
    JOBS,
    WINDOW,
    WINDOWS_PER_CONNECTION,
    ColdReads,
    ReadIntoCache,
)
from tidelog.sim.machines.disk import SimDisk, SimFile

SIZE = 100 * WINDOW


class Reading:
    def __init__(self) -> None:
        self.outbound: list[Outbound] = []
        self.jobs = Jobs(self.outbound.append, Clock(0))
        self.cold_reads = ColdReads(self.jobs)
        self.disk = SimDisk()
        self.file: SimFile = self.disk.open("log")
        self.woken: list[str] = []

    def begin(self, position: int, conn: int = 1, name: str = "") -> None:
        part = FileSlice(self.file, position, 10)
        self.cold_reads.begin(part, conn, lambda: self.woken.append(name or f"{conn}"))

    def was_just_read(self, position: int) -> bool:
        return self.cold_reads.was_just_read(FileSlice(self.file, position, 1))

    @property
    def runs(self) -> list[Run]:
        return [one for one in self.outbound if isinstance(one, Run)]

    @property
    def cancelled(self) -> list[int]:
        return [one.token for one in self.outbound if isinstance(one, Cancel)]

    def end(self, run: Run, error: OSError | None = None) -> None:
        self.jobs.ended(Ran(run.token, None, error))


def test_requests_for_the_same_window_share_a_job() -> None:
    reading = Reading()
    reading.begin(WINDOW + 5, 1)
    reading.begin(2 * WINDOW - 1, 2)
    [run] = reading.runs
    assert run.job == ReadIntoCache(FileSlice(reading.file, WINDOW, WINDOW))
    assert reading.woken == []
    reading.end(run)
    assert reading.woken == ["1", "2"]
    assert len(reading.cold_reads) == 0


def test_a_failed_job_wakes_its_waiters_who_then_meet_the_error() -> None:
    reading = Reading()
    reading.begin(0)
    reading.end(reading.runs[0], OSError(5, "Input/output error"))
    assert reading.woken == ["1"]


def test_a_connection_waits_for_a_few_windows_only() -> None:
    reading = Reading()
    for number in range(WINDOWS_PER_CONNECTION + 3):
        reading.begin(number * WINDOW, 1, f"window {number}")
    assert len(reading.runs) == WINDOWS_PER_CONNECTION
    reading.begin(50 * WINDOW, 2)
    assert len(reading.runs) == WINDOWS_PER_CONNECTION + 1, "another connection has its own"
    reading.end(reading.runs[0])
    extra = [f"window {number}" for number in range(WINDOWS_PER_CONNECTION, 7)]
    assert reading.woken == ["window 0", *extra], "they look again after the first window"


def test_a_node_reads_a_limited_number_of_windows_at_a_time_in_their_order() -> None:
    reading = Reading()
    for conn in range(JOBS + 5):
        reading.begin(conn * WINDOW, conn)
    assert len(reading.runs) == JOBS
    for number in range(JOBS + 5):
        reading.end(reading.runs[number])
    assert reading.woken == [f"{conn}" for conn in range(JOBS + 5)]
    assert len(reading.cold_reads) == 0


def test_a_lost_connection_ends_the_reads_that_nobody_else_waits_for() -> None:
    reading = Reading()
    reading.begin(0, 1)
    reading.begin(0, 2)
    reading.begin(WINDOW, 1)
    shared, own = reading.runs
    reading.cold_reads.connection_lost(1)
    assert reading.cancelled == [own.token]
    reading.end(own)
    reading.end(shared)
    assert reading.woken == ["2"]
    assert len(reading.cold_reads) == 0


def test_a_lost_connection_gives_its_turn_to_the_next() -> None:
    reading = Reading()
    for conn in range(JOBS):
        reading.begin(conn * WINDOW, conn)
    reading.begin(50 * WINDOW, 50)
    reading.begin(51 * WINDOW, 51)
    reading.cold_reads.connection_lost(50)
    reading.cold_reads.connection_lost(0)
    assert reading.cancelled == [reading.runs[0].token], "the read of 50 had not begun"
    assert reading.runs[-1].job.part.position == 51 * WINDOW
    reading.cold_reads.connection_lost(77)
    assert len(reading.cold_reads) == JOBS


def test_a_waiter_learns_that_the_read_did_not_help() -> None:
    reading, found = Reading(), list[bool]()
    part = FileSlice(reading.file, 5, 1)
    reading.cold_reads.begin(part, 1, lambda: found.append(reading.was_just_read(WINDOW - 1)))
    reading.cold_reads.begin(part, 1, lambda: found.append(reading.was_just_read(WINDOW)))
    assert not reading.was_just_read(0)
    reading.end(reading.runs[0])
    assert found == [True, False]
    assert not reading.was_just_read(0), "later it may help again"


def test_the_job_reads_its_window_in_steps_and_a_shorter_file_is_no_error() -> None:
    disk = SimDisk()
    file = disk.open("log")
    file.append((bytes(WINDOW + WINDOW // 2),))
    file.sync()
    disk.evict_all()
    pages = file.size // 4096
    for _ in ReadIntoCache(FileSlice(file, 0, WINDOW)).run():
        assert disk.pages_loaded <= pages
    assert disk.pages_loaded == WINDOW // 4096
    list(ReadIntoCache(FileSlice(file, WINDOW, WINDOW)).run())
    assert disk.pages_loaded == pages
    file.truncate(10)
    list(ReadIntoCache(FileSlice(file, WINDOW, WINDOW)).run())
