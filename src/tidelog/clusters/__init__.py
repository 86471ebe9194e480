"""Local clusters: their directories, their ports, and the processes of their nodes."""
