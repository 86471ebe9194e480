"""A question for `tidelog whatif`: the settings of a topic and of its producer, and a fault."""

from typing import Any, NamedTuple

ACKS = {"0": 0, "1": 1, "all": -1}


class Question(NamedTuple):
    replication_factor: int = 3
    min_insync_replicas: int = 2
    acks: str = "all"
    fault: str = "leader-crash"
    unclean: bool = False
    """unclean.leader.election.enable"""
    flush: bool = False
    """flush.messages=1: a record is synced before it is acknowledged."""

    @property
    def settings(self) -> str:
        words = [
            f"acks={self.acks}",
            f"min.insync.replicas={self.min_insync_replicas}",
            f"replication.factor={self.replication_factor}",
        ]
        if self.unclean:
            words.append("unclean.leader.election.enable=true")
        if self.flush:
            words.append("flush.messages=1")
        return " ".join(words)

    @property
    def topic_configs(self) -> dict[str, Any]:
        configs: dict[str, Any] = {"min.insync.replicas": str(self.min_insync_replicas)}
        if self.unclean:
            configs["unclean.leader.election.enable"] = "true"
        if self.flush:
            configs["flush.messages"] = "1"
        return configs
