"""The APIs of administrators: topics, configurations, reassignments, log directories, features."""
