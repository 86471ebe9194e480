"""Share groups on the leaders of their partitions: delivery, acknowledgement, persistence."""
