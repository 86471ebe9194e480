"""Damage to a node's files while it is down, and the rules that must hold afterwards."""
