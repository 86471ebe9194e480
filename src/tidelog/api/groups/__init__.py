"""Requests of consumer groups."""
