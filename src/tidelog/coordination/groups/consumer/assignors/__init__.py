"""The assignors of consumer groups: they map subscribed topics to members, as Kafka's do."""
