"""After an unclean stop, a node recovers its logs in steps and serves requests in between (F98)."""

from collections import Counter
from collections.abc import Iterator

import pytest
from tests.sim.cluster_steps import created
from tests.sim.messages import ask, create_topic
from tests.sim.talk import Talk, await_ready, await_true, running
from tests.sim.writers import Writer, read_all

from tidelog.log.recovery import recovery
from tidelog.log.recovery.recovery import SegmentRecovery
from tidelog.model.errors import ErrorCode
from tidelog.model.ids import Millis
from tidelog.node.inspection import NodeInspection
from tidelog.sim.machines.cluster import SimCluster
from tidelog.sim.machines.host import SimHost

BATCHES = 40
DESCRIBE_CLUSTER, CONTROLLERS = 60, 2


@pytest.fixture(autouse=True)
def small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch of a log is a step of its own."""
    monkeypatch.setattr(recovery, "STEP_BYTES", 1)


class Scanned:
    """Counts the batches that recovery scans at each simulated time."""

    def __init__(self) -> None:
        self.cluster: SimCluster | None = None
        self.times: Counter[Millis] = Counter()

    def one(self) -> None:
        """Count a batch, unless the node is just being created and opens its metadata log."""
        if self.cluster is not None:
            self.times[self.cluster.world.now] += 1


@pytest.fixture
def scanned(monkeypatch: pytest.MonkeyPatch) -> Iterator[Scanned]:
    found, enter = Scanned(), SegmentRecovery._enter

    def counted(self: SegmentRecovery, *arguments: object, **more: object) -> None:
        found.one()
        enter(self, *arguments, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(SegmentRecovery, "_enter", counted)
    yield found
    found.cluster = None


class Scene:
    """One node that has died after it wrote a log of several segments, which were never synced."""

    def __init__(self, seed: int, scanned: Scanned) -> None:
        self.scanned = scanned
        self.cluster = running(seed, nodes=1)
        self.host: SimHost = self.cluster.hosts[1]
        talk = Talk(self.cluster, 1)
        assert created(talk.ask(create_topic("orders", internal_segment_bytes="20000")))
        self.writer = Writer(self.cluster, "orders")
        self.writer.connect(1)
        for _ in range(BATCHES):
            self.writer.write()
            self.cluster.world.run(20)
        self.host.kill()

    def start(self) -> None:
        self.scanned.times.clear()
        self.scanned.cluster = None
        self.host.start()
        self.scanned.cluster = self.cluster

    def run_until_scanned(self, batches: int) -> None:
        await_true(self.cluster, lambda: self.scanned.times.total() >= batches)

    def is_open(self) -> bool:
        return bool(NodeInspection(self.host.node).replicas)

    def check(self) -> None:
        await_ready(self.cluster)
        self.writer.check(read_all(Talk(self.cluster, 1), "orders"))


def test_f98_a_log_is_recovered_in_steps_and_nothing_is_lost(scanned: Scanned) -> None:
    scene = Scene(1, scanned)

    scene.start()
    scene.check()

    assert scanned.times.total() >= BATCHES
    assert max(scanned.times.values()) == 1


def test_f98_the_controller_is_served_while_a_log_is_recovered(scanned: Scanned) -> None:
    scene = Scene(2, scanned)
    scene.start()
    scene.run_until_scanned(BATCHES // 2)
    assert not scene.is_open()

    cluster = Talk(scene.cluster, 1, listener="CONTROLLER").ask(
        ask(DESCRIBE_CLUSTER, endpoint_type=CONTROLLERS)
    )

    assert cluster.error_code is ErrorCode.none
    assert not scene.is_open()
    scene.check()


@pytest.mark.parametrize("crash", ["kill", "lose_power"])
@pytest.mark.parametrize("batches", [1, 13, BATCHES - 1])
def test_f98_a_node_that_dies_within_a_recovery_loses_nothing(
    scanned: Scanned, batches: int, crash: str
) -> None:
    scene = Scene(3, scanned)
    if crash == "lose_power":
        scene.host.disk.sync_all()
    scene.start()
    scene.run_until_scanned(batches)
    getattr(scene.host, crash)()

    scene.start()
    scene.check()


def test_f98_a_clean_stop_within_a_recovery_does_not_mark_the_log_as_clean(
    scanned: Scanned,
) -> None:
    scene = Scene(4, scanned)
    scene.start()
    scene.run_until_scanned(BATCHES // 2)
    scene.host.shutdown()
    await_true(scene.cluster, lambda: not scene.host.is_up)

    scene.start()
    scene.check()

    assert scanned.times.total() >= BATCHES


def test_f98_a_failed_fsync_ends_the_recovery_and_the_use_of_the_directory(
    scanned: Scanned,
) -> None:
    scene = Scene(5, scanned)
    scene.start()
    scene.run_until_scanned(BATCHES // 2)
    scene.host.disk.faults.fails_sync = True

    await_true(scene.cluster, lambda: not scene.host.is_up)

    scene.host.disk.faults.fails_sync = False
    scene.start()
    scene.check()
