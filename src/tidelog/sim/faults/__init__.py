"""Faults: their kinds, their execution, and the budget that the protocol must survive."""
