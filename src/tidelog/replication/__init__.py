"""Pure state machines that decide commits and leadership; they use no clock, file or socket."""
