"""A broker, a controller or both, as one synchronous object: events go in, effects come out."""
