"""Faults: their kinds, their execution, and the budget of faults that the protocol survives."""
