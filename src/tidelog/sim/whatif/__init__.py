"""What do I lose if? A user's own settings, simulated under one fault many times."""
