"""Delivery to share groups on the leader of a partition (KIP-932)."""
