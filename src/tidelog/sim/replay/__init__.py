"""Replays: what a run looked like, moment by moment, as a page that needs nothing but a browser."""
