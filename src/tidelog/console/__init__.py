"""The web console: a process of its own that shows a cluster, live, through Kafka's protocol."""
