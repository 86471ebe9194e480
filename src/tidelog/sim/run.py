"""One run of a plan, from the first start of its nodes to the last look at what is left."""

from tidelog.sim.outcome import Outcome
from tidelog.sim.plan import Plan
from tidelog.sim.recorder import Recorder


def simulate(plan: Plan, recorder: Recorder | None = None) -> Outcome:
    """Run it. A violated invariant is a value in the outcome, and so is a bug of the node's."""
    raise NotImplementedError
