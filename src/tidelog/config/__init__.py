"""Every configuration key: name, type, default, check, scope and status; and the settings."""
