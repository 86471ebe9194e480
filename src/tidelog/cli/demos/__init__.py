"""The demos: clusters under load, in which nodes are killed."""
