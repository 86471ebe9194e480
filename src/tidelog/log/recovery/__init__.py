"""Opens a log after any kind of stop: cuts an invalid tail and sets aside files that do not fit."""
