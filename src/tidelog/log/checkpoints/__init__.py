"""The small files that accompany the logs: checkpoints, epochs, ids and the clean-shutdown mark."""
