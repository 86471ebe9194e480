"""State of idempotent and transactional producers, and its snapshots on disk."""
