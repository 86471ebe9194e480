"""Simulated clients that send real requests and report the responses to the checker."""
