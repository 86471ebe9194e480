"""This node's part in the metadata quorum: votes, fetches and changes of the voters."""
