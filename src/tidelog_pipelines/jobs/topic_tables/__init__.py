"""`tidelog tables run`: the tables of topics, kept by one streaming query."""
