"""Consumer groups: the coordinator's decisions and responses."""
