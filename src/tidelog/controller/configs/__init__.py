"""Configurations of topics, brokers and groups: checks, changes and effective values."""
