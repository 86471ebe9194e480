"""The log directories of this node: which replica lies where, failures, strays, upkeep."""
