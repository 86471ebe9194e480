"""The APIs of share groups and of the share coordinator (KIP-932)."""
