"""Decides which tests a process of pytest-xdist runs together."""

from xdist.scheduler import LoadScopeScheduling


class Sharing(LoadScopeScheduling):
    """Runs the tests of a file in one process, because they share clusters.

    Each process has one Spark session and one cluster for its tests of the pipeline. Simulated
    tests are long, so each of them may run in any process. The tests of stories stay together,
    because each process caches the results of stories.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        is_simulated = file.split("/")[1] == "sim" and not file.endswith("/test_stories.py")
        return nodeid if is_simulated else file
