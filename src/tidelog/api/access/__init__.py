"""What a client needs to be allowed to do, for each API."""
