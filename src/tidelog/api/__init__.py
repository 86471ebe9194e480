"""Request handlers, one module per family of Kafka APIs. A handler yields effects; no I/O."""
