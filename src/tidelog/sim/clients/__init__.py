"""Simulated clients: connections, requests, and what clients were told."""
