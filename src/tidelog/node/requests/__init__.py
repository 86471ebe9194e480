"""Clients' requests on their way through the node: decode, drive the handler, answer in order."""
