"""`tidelog tables run`: writes topics to their tables, with one streaming query."""
