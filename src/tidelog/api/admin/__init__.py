"""Requests of administrators: topics, configurations, reassignments, log directories, features."""
