"""The help of the commands: examples, suggestions for typing errors, help of pipeline jobs."""
