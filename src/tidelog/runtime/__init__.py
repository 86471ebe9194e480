"""The real host: sockets, files, clock and processes, without protocol logic."""
