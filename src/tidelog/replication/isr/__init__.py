"""In-sync replication of a partition: the leader's state machine and the follower's rules."""
