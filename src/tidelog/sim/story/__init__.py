"""Stories: scenarios in a small text language, played on a simulated cluster."""
