"""The active controller on this node: it decides, and answers once the decision is committed."""

from typing import Any

from kio.schema.broker_heartbeat.v2.request import BrokerHeartbeatRequest

from tidelog.api.handler import Request
from tidelog.controller.decide import decide
from tidelog.controller.decision import DecideContext
from tidelog.controller.features import activation_records
from tidelog.controller.liveness import Liveness
from tidelog.controller.settings import BrokerSettings
from tidelog.model.dice import Dice
from tidelog.model.effects import ChangeMetadata
from tidelog.node.clock import Clock
from tidelog.node.parking import PARKED, Parked, Resume
from tidelog.node.quorum import Quorum


class Controlling:
    def __init__(self, quorum: Quorum, settings: BrokerSettings, dice: Dice, clock: Clock) -> None:
        self._quorum = quorum
        self._settings = settings
        self._dice = dice
        self._clock = clock
        self._liveness = Liveness(settings.broker_session_timeout_ms)

    def activate(self) -> None:
        """What a controller writes before anything else: in a new cluster, its feature levels."""
        records = activation_records(self._quorum.pending_image, self._settings)
        if records:
            self._quorum.propose(records, lambda: None)

    def change(self, effect: ChangeMetadata, resume: Resume, _: Request) -> Any | Parked:
        self.submit(effect.request, resume)
        return PARKED

    def submit(self, message: Any, resume: Resume) -> None:
        """Decide on the image as it will be; answer when what the answer rests on is committed."""
        now = self._clock.now
        if isinstance(message, BrokerHeartbeatRequest):
            self._liveness.heard(message.broker_id, now, message.current_metadata_offset)
        context = DecideContext(
            now=now,
            dice=self._dice,
            settings=self._settings,
            next_offset=self._quorum.next_offset,
            sessions=self._liveness,
        )
        decision = decide(self._quorum.pending_image, message, context)

        def committed() -> None:
            resume(decision.response)

        if decision.records:
            self._quorum.propose(decision.records, committed)
        else:
            self._quorum.when_committed(committed)
