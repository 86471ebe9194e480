"""The commands `simulate` and `whatif`."""
