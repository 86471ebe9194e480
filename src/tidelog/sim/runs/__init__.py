"""A simulated run: its plan, its derivation from a seed, its outcome and its report."""
