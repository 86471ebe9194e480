"""Damage at rest: what can happen to a node's files while it is down, and what must hold then."""
