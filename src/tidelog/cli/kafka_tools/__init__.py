"""Commands with the options and the output of Kafka's own tools."""
