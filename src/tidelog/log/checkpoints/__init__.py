"""Kafka's small files beside the logs: checkpoints, epochs, ids and the clean-shutdown mark."""
