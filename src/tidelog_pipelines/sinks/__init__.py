"""Sinks: tables, group offsets and reports."""
