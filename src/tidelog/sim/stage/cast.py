"""The nodes of a stage: brokers 1 to n, and controllers from 101 on, each on its own machine."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tidelog.config.settings import BrokerSettings
from tidelog.model.ids import NodeId

BROKER_PORT, CONTROLLER_PORT = 9092, 9093
FIRST_CONTROLLER: NodeId = 101

QUICK_FAILURE_DETECTION = {
    "broker.heartbeat.interval.ms": "250",
    "broker.session.timeout.ms": "2000",
}
"""The same settings as in `tidelog up`."""


@dataclass(slots=True)
class Cast:
    brokers: int = 3
    controllers: int = 1
    seed: int = 1
    settings: dict[str, str] = field(default_factory=dict)
    """Kafka's configuration keys and values, for every node."""

    @property
    def broker_ids(self) -> list[NodeId]:
        return list(range(1, self.brokers + 1))

    @property
    def controller_ids(self) -> list[NodeId]:
        return list(range(FIRST_CONTROLLER, FIRST_CONTROLLER + self.controllers))

    def settings_of(self, node: NodeId) -> BrokerSettings:
        own = self._controller(node) if node >= FIRST_CONTROLLER else self._broker(node)
        voters = (f"{one}@node{one}:{CONTROLLER_PORT}" for one in self.controller_ids)
        return BrokerSettings.from_properties(
            {
                "node.id": str(node),
                "controller.listener.names": "CONTROLLER",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
                "controller.quorum.voters": ",".join(voters),
                "log.dirs": "data",
                "offsets.topic.replication.factor": "1",
                "offsets.topic.num.partitions": "1",
                **QUICK_FAILURE_DETECTION,
                **own,
                **self.settings,
            }
        )

    def _broker(self, node: NodeId) -> Mapping[str, str]:
        listener = f"PLAINTEXT://node{node}:{BROKER_PORT}"
        return {
            "process.roles": "broker",
            "listeners": listener,
            "advertised.listeners": listener,
        }

    def _controller(self, node: NodeId) -> Mapping[str, str]:
        return {
            "process.roles": "controller",
            "listeners": f"CONTROLLER://node{node}:{CONTROLLER_PORT}",
        }
