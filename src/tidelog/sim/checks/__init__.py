"""The checker: finds what each event has changed, and passes the changes to the invariants."""
