"""Sockets: listeners, connections, limits on both."""
