"""The demos: clusters under load whose nodes are killed."""
