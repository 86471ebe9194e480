"""Pure state machines that decide commits and leadership: no clock, file or socket."""
