"""The simulator: the same Node under simulated time, network and disk."""
