"""A broker, a controller or both as one synchronous object: it takes events, it returns effects."""
