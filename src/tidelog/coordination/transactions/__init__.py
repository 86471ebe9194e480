"""The transaction coordinator's rules: pure functions from a transaction's state to its next."""
