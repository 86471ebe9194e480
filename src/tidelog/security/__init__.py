"""Who a client is, and what it may do. Pure: decisions on values, without sockets or clocks."""
