"""Opens a log after any kind of stop: truncates an invalid tail and sets aside misplaced files."""
