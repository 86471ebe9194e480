"""A node for tests that counts its work in function calls, which are the same on every machine."""

from collections.abc import Callable
from cProfile import Profile

from tests.unit.node.bench import Bench

from tidelog.model.events import FrameReceived, Ran, Ticked
from tidelog.model.outbound import Outbound


class MeteredBench(Bench):
    """Keeps the largest number of function calls that one event has caused."""

    most_calls = 0
    is_metered = False

    def tell(self, event: object) -> list[Outbound]:
        if not (self.is_metered and isinstance(event, FrameReceived | Ran | Ticked)):
            return super().tell(event)  # type: ignore[arg-type]
        outbound: list[Outbound] = []
        calls = _calls_during(lambda: outbound.extend(super(MeteredBench, self).tell(event)))
        self.most_calls = max(self.most_calls, calls)
        return outbound


def _calls_during(action: Callable[[], object]) -> int:
    profile = Profile()
    profile.runcall(action)
    return sum(entry.callcount for entry in profile.getstats())
