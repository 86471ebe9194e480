"""Updates the quarantine after a replay: removes records, or gives them a newer reason.

The first replay adds the columns `attempts` and `decoder`. Both are null in rows that no replay has
changed. Such a row stands for one attempt.
"""

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from tidelog_pipelines.sinks.tables import ChangingTables

QUARANTINE = "quarantine"
ATTEMPTS, DECODER = "attempts", "decoder"


def settle(tables: ChangingTables, topic: str, outcomes: DataFrame, decoder: str) -> None:
    """Remove the records that were decoded, and give the other records their newest reason.

    Both changes are made in one commit. If a record fails with the same reason in the same decoder,
    its row stays as it is. So a repeated run does not count as another attempt.
    """
    tables.add_columns(QUARANTINE, {ATTEMPTS: "INT", DECODER: "STRING"})
    condition = (
        f"t.topic = {_quoted(topic)} AND t.`partition` = s.`partition` AND t.`offset` = s.`offset`"
    )
    is_news = "t.decoder IS DISTINCT FROM s.decoder OR t.reason IS DISTINCT FROM s.reason"
    tables.merge(
        QUARANTINE,
        outcomes.select("partition", "offset", "reason", f.lit(decoder).alias(DECODER)),
        condition,
        "WHEN MATCHED AND s.reason IS NULL THEN DELETE "
        f"WHEN MATCHED AND ({is_news}) THEN UPDATE SET reason = s.reason, decoder = s.decoder, "
        "attempts = coalesce(t.attempts, 1) + 1",
    )


def _quoted(text: str) -> str:
    """A topic's name as an SQL literal. Quotes and backslashes are not allowed in topic names."""
    return f"'{text}'"
