"""Decides which tests a process of pytest-xdist runs together."""

from xdist.scheduler import LoadScopeScheduling


class Sharing(LoadScopeScheduling):
    """Runs the tests of a file in one process, because they share clusters.

    All tests with Spark run in one process, too. Simulated tests are long, so each of them may run
    in any process. The tests of stories stay together, because each process caches the results of
    stories.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        kind = file.split("/")[1]
        if kind == "pipelines":
            return kind
        return nodeid if kind == "sim" and not file.endswith("/test_stories.py") else file
