"""The cluster image: the immutable metadata, how records change it, and how two images differ."""
