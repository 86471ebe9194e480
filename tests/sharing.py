"""Which tests one of several processes is given together."""

from xdist.scheduler import LoadScopeScheduling


class Sharing(LoadScopeScheduling):
    """A file's tests stay together, as its clusters do, and those of the pipeline with their Spark.

    Of the simulated tests each is long enough to go alone, but for stories, which are played once.
    """

    def _split_scope(self, nodeid: str) -> str:
        file = nodeid.partition("::")[0]
        kind = file.split("/")[1]
        if kind == "pipelines":
            return kind
        return nodeid if kind == "sim" and not file.endswith("/test_stories.py") else file
