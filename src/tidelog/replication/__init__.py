"""Pure machines that decide what is committed and who may lead. No clock, no file, no socket, no dice."""
