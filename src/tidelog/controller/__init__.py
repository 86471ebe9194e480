"""Cluster metadata: records, the immutable image, and the controller's decisions. Pure."""
