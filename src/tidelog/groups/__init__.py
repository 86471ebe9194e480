"""The group coordinator as a machine over a log. Pure."""
