"""The types that all layers share: ids, errors, events, effects and the interface to the disk.

Invariant: this package imports no other package of Tidelog.
"""
