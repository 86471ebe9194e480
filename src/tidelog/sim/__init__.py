"""The simulated host: the same Node under simulated time, network and disk."""
