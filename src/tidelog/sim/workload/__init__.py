"""Clients inside the simulation: what they ask is real, what they are told goes to the checker."""
