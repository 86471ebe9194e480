"""Pure functions from DataFrame to DataFrame: no session, no clock, no I/O."""
