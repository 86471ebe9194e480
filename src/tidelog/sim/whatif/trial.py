"""One simulated run of a question: a producer writes, the fault occurs, and the cluster recovers.

A record is lost if it was acknowledged and the log of the last leader does not contain it. The
longest time without an acknowledgement counts as the time for which writes were unavailable.
"""

from typing import NamedTuple

from tidelog.model.errors import ErrorCode
from tidelog.model.ids import NO_NODE, Millis, NodeId, TopicPartition
from tidelog.sim.clients.client import SimClient
from tidelog.sim.clients.messages import create_topic
from tidelog.sim.stage.cast import Cast
from tidelog.sim.stage.stage import Stage
from tidelog.sim.stage.writing import StageLedger, StageWrite
from tidelog.sim.whatif.faults import FAULTS, WhatIfScene
from tidelog.sim.whatif.question import ACKS, Question

TOPIC = TopicPartition("orders", 0)
RETRY_MS: Millis = 50
REQUEST_TIMEOUT_MS: Millis = 3_000
"""The time after which a producer gives up a request and looks for the leader again."""
RECOVERY_MS: Millis = 120_000
QUICK_MS, CALM_MS = 2, 25
"""The interval between two records: QUICK_MS around the fault, CALM_MS afterwards."""
IN_FLIGHT = 50


class WhatIfTrial(NamedTuple):
    seed: int
    acknowledged: int
    lost: int
    unavailable_ms: Millis | None
    """None with acks=0, where no request is acknowledged."""
    recovered: bool
    """Whether all replicas were in sync again within two minutes."""


class _Producer:
    """Sends to the leader that it knows, and looks up the leader after an error or a timeout.

    If a record was refused or not answered, the producer sends a new record instead. With acks=0
    there are no answers, so the producer notices only lost connections.
    """

    def __init__(self, stage: Stage, ledger: StageLedger, acks: int) -> None:
        self.pending = 0
        self.longest_gap: Millis = 0
        self.every_ms: Millis = QUICK_MS
        self._stage = stage
        self._ledger = ledger
        self._acks = acks
        self._is_on = True
        self._leader: NodeId = NO_NODE
        self._client: SimClient | None = None
        self._last_ack: Millis = stage.now
        self._tick()

    def stop(self) -> None:
        self._is_on = False

    def calm_down(self) -> None:
        self.every_ms = CALM_MS

    def _tick(self) -> None:
        if self._is_on:
            self._stage.world.after(self.every_ms, self._tick)
            # During an outage, the buffer of a producer fills up and accepts no more records.
            if self.pending < IN_FLIGHT:
                self.pending += 1
                self._send()

    def _send(self) -> None:
        if self._client is None or self._client.is_lost:
            self._leader = self._stage.leader(TOPIC)
            self._client = None if self._leader == NO_NODE else self._stage.client(self._leader)
        if self._client is None:
            self._again()
            return
        self._ledger.begin(TOPIC, self._acks, node=self._leader, then=self._answered)
        if self._acks == 0:
            self.pending -= 1

    def _answered(self, write: StageWrite) -> None:
        if write.is_acknowledged:
            self.pending -= 1
            now = self._stage.now
            gap = now - self._last_ack - self.every_ms
            self.longest_gap = max(self.longest_gap, gap)
            self._last_ack = now
        else:
            self._client = None
            self._again()

    def _again(self) -> None:
        self._stage.world.after(RETRY_MS, self._send)


def run_trial(question: Question, seed: int) -> WhatIfTrial:
    stage = Stage(Cast(brokers=max(3, question.replication_factor), seed=seed))
    stage.patience_ms = REQUEST_TIMEOUT_MS
    stage.begin()
    replicas = list(range(1, question.replication_factor + 1))
    made = stage.ask(1, create_topic("orders", on=[replicas], **question.topic_configs))
    assert made is not None
    assert made.topics[0].error_code is ErrorCode.none
    scene = WhatIfScene(stage, TOPIC, stage.world.dice.fork("whatif"))
    stage.run_until(lambda: scene.is_whole, 10_000)
    stage.run(200)
    ledger = StageLedger(stage)
    producer = _Producer(stage, ledger, ACKS[question.acks])
    stage.run(200 + scene.dice.below(300))
    stage.world.after(300, producer.calm_down)
    FAULTS[question.fault].strike(scene)
    recovered = stage.run_until(lambda: scene.is_whole, RECOVERY_MS)
    stage.run(500)
    producer.stop()
    stage.run_until(lambda: producer.pending == 0, 30_000)
    stage.run(500)
    lost = ledger.lost(TOPIC)
    acknowledged = len(ledger.acknowledged.get(TOPIC, ()))
    return WhatIfTrial(
        seed,
        acknowledged,
        acknowledged if lost is None else len(lost),
        None if question.acks == "0" else producer.longest_gap,
        recovered,
    )
