"""Group coordinators: pure state machines, one per partition of `__consumer_offsets`."""
