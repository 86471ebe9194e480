"""The vocabulary of all layers: ids, errors, events, effects, the disk port.

Invariant: this package imports no other package of Tidelog.
"""
