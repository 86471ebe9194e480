"""A simulated run: its plan, how it is drawn from a seed, its outcome and its report."""
