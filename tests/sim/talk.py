"""Requests to simulated nodes, from the simulator."""

from tidelog.sim.clients.talk import Asked, Talk, await_ready, await_true, running

__all__ = ["Asked", "Talk", "await_ready", "await_true", "running"]
