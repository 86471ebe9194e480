"""The page of a health report."""
