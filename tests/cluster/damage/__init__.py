"""Damages the files of a stopped node, and checks the cluster after the node has started again."""
