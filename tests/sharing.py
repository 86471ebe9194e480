"""Decides which tests a process of pytest-xdist runs together."""

from xdist.scheduler import LoadScopeScheduling


class Sharing(LoadScopeScheduling):
    """Keeps the tests of a file together because they share clusters, and all that use Spark.

    A simulated test runs alone because it is long, except stories, which are cached per process.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        kind = file.split("/")[1]
        if kind == "pipelines":
            return kind
        return nodeid if kind == "sim" and not file.endswith("/test_stories.py") else file
