"""The output formats of the commands: Kafka's exact formats, tables and screens."""
