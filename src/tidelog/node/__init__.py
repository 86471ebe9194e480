"""A broker, a controller or both, as one synchronous object that turns events into effects."""
