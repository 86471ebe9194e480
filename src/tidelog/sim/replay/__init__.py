"""Replays: writes a simulated run as an HTML page that shows it moment by moment."""
