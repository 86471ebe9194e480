"""Replays: writes a simulated run as an HTML page that shows the run moment by moment."""
