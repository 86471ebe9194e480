"""Every configuration key: name, type, default, limits, and the settings built from them."""
