"""The checker: compares all replicas after every event, and reports changes to the invariants."""
