"""The help of the commands: examples, near matches, the help of pipeline jobs."""
