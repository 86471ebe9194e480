"""The real host: sockets, files, clock, processes. Holds no protocol logic."""
