"""One module per page: requests to the cluster, turned into values for JSON."""
