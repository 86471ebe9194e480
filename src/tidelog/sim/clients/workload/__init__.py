"""Clients inside the simulation: real requests, whose answers go to the checker."""
