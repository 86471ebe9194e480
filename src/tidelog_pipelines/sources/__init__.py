"""Sources: topics, segment files, ledgers and event logs."""
