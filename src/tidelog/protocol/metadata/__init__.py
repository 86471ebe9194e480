"""Kafka's metadata records and their codec."""
