"""The simulator: runs the same Node as a real broker on simulated time, network and disk."""
