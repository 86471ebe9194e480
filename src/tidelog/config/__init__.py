"""The configuration keys with their types, defaults, checks and scopes, and the parsed settings."""
