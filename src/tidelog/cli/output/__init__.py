"""How commands print: Kafka's formats to the letter, tables, screens."""
