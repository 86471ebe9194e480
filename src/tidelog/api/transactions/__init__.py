"""The handlers of the transaction APIs."""
