"""A simulated run: its plan, how the plan is drawn from a seed, its outcome and its report."""
