"""The log directories of this node: placement of replicas, failures, stray directories, upkeep."""
