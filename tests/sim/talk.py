"""Makes the simulator's functions for requests to nodes available to tests."""

from tidelog.sim.clients.talk import Asked, Talk, await_ready, await_true, running

__all__ = ["Asked", "Talk", "await_ready", "await_true", "running"]
