"""The simulations of `tidelog whatif`: a user's own settings under one fault, many times."""
