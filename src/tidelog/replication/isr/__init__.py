"""In-sync replication of a partition: the leader's state machine."""
