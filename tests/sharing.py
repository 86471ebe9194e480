"""Decides which tests a process of pytest-xdist runs together."""

from xdist.scheduler import LoadScopeScheduling


class Sharing(LoadScopeScheduling):
    """Keeps together the tests of a file, because they share clusters, and all tests with Spark.

    A simulated test is long, so it may run in any process. The tests of stories stay together,
    because each process caches the results of stories.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        kind = file.split("/")[1]
        if kind == "pipelines":
            return kind
        return nodeid if kind == "sim" and not file.endswith("/test_stories.py") else file
