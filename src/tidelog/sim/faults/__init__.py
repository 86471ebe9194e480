"""Faults: their kinds, how they strike, and which of them the protocol must survive."""
