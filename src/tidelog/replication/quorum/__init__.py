"""The metadata quorum: Raft as Kafka speaks it (KRaft), pull-based, with pre-vote. Pure."""
