"""Opening a log after any kind of stop: what is whole, what is cut, what is set aside."""
