"""Share groups: their members, assignments and share partitions (KIP-932)."""
