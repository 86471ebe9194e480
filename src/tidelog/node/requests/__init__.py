"""Decodes the requests of clients, runs their handlers and sends the responses in order."""
