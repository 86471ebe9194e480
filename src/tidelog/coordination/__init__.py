"""Group coordinators: state machines over the partitions of `__consumer_offsets`. Pure."""
