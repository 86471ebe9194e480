"""The cluster image: immutable metadata, how records change it, and how two images differ."""
