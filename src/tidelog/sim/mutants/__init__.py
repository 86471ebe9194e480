"""Mutants: rules that are known to be wrong, by name. The simulator must detect every mutant."""

from tidelog.sim.mutants.compaction import COMPACTION
from tidelog.sim.mutants.controlling import CONTROLLING
from tidelog.sim.mutants.coordinators import COORDINATORS
from tidelog.sim.mutants.damage import DAMAGE
from tidelog.sim.mutants.lag import LAG
from tidelog.sim.mutants.majorities import MAJORITIES
from tidelog.sim.mutants.membership import MEMBERSHIP
from tidelog.sim.mutants.mutant import Mutant
from tidelog.sim.mutants.transactions import TRANSACTIONS
from tidelog.sim.mutants.truncation import LADDER

__all__ = ["MUTANTS", "Mutant"]

MUTANTS: dict[str, Mutant] = {
    mutant.name: mutant
    for mutant in (
        *LADDER,
        *MEMBERSHIP,
        *CONTROLLING,
        *LAG,
        *DAMAGE,
        *COORDINATORS,
        *COMPACTION,
        *MAJORITIES,
        *TRANSACTIONS,
    )
}
