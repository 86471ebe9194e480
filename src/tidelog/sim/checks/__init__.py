"""The checker: it compares all replicas after every event and feeds the invariants."""
