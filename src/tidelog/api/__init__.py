"""One module per family of Kafka APIs: request in, effects out. Never touches a log."""
