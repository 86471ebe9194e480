"""SASL mechanisms, as pure exchanges of bytes."""
