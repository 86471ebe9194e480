"""Consumer groups: what their coordinator decides and answers."""
