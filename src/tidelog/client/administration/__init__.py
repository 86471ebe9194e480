"""Administrative requests: configurations, groups, partitions, the quorum, transactions."""
