"""Simulated clients: connections, requests, and the responses that clients received."""
