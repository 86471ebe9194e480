"""The simulations of `tidelog whatif`: they repeat one fault many times with a user's settings."""
