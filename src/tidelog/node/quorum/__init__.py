"""This node's part in the metadata quorum: votes, fetches, voters."""
