"""The metadata quorum: Raft as in Kafka (KRaft), pull-based, with pre-vote, without I/O."""
