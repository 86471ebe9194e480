"""Conversations with simulated nodes: the simulator's own."""

from tidelog.sim.clients.talk import Asked, Talk, await_ready, await_true, running

__all__ = ["Asked", "Talk", "await_ready", "await_true", "running"]
