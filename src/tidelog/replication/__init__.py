"""Pure machines that decide what is committed and who may lead: no clock, file or socket."""
