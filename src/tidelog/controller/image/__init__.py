"""The cluster image: immutable metadata, the application of records, and image differences."""
