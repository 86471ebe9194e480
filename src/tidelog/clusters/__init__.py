"""Local clusters: their directories and ports, and processes that are started and supervised."""
