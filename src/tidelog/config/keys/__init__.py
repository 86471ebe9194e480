"""The table of configuration keys, one module per subject."""
