"""Kafka's small files beside the logs: checkpoints, epochs, ids, the clean-shutdown mark."""
