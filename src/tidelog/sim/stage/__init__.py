"""A small cluster with its controllers apart: the ground for stories and for `whatif`."""
