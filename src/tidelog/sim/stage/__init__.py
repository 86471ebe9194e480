"""A small cluster with separate controllers, for stories and for `whatif`."""
