"""The partition leader's part in transactions: verified appends, and markers."""
