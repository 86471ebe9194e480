"""Cluster metadata: the immutable image, and the controller's decisions as pure functions."""
