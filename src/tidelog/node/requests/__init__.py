"""Requests of clients: decode, run the handler, answer in order."""
