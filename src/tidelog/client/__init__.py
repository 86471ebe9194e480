"""A small synchronous Kafka client: connections, producer, fetcher, administration."""
