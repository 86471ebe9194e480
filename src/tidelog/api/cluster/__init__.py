"""Requests about the cluster: metadata, versions, brokers, the quorum."""
