"""Request handlers, one module per family of Kafka APIs. Handlers yield effects and do no I/O."""
