"""The APIs of the cluster: metadata, versions, brokers, the quorum."""
