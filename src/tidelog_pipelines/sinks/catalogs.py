"""Checks a --table of a catalog (Hive, Unity, Glue), which Spark's own configuration provides."""

from pyspark.sql import SparkSession

from tidelog_pipelines.failures import JobFailed
from tidelog_pipelines.transformations.fitting import quoted

SESSION_CATALOG = "spark_catalog"
DELTA_CATALOG = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
"""Stores its tables in the catalog that `spark.sql.catalogImplementation` selects."""


def require_schema(spark: SparkSession, table: str, *, is_iceberg: bool = False) -> None:
    """Raise if the schema of a catalog's table does not exist. A table in --out needs none."""
    schema, first = table.rpartition(".")[0], table.partition(".")[0]
    if schema and is_iceberg and not spark.conf.get(f"spark.sql.catalog.{first}", None):
        raise JobFailed(
            f"--table {table} needs a catalog of Iceberg's: --conf spark.sql.catalog.{first}="
            "org.apache.iceberg.spark.SparkCatalog, and its type and address."
        )
    if schema and not spark.catalog.databaseExists(quoted(*schema.split("."))):
        raise JobFailed(
            f"--table {table}: there is no schema {schema}. Create it, or give the catalog's "
            "configuration with --conf."
        )


def require_lasting(spark: SparkSession, table: str) -> None:
    """Raise if the catalog of a table exists only in the memory of this process."""
    first, dot, _ = table.partition(".")
    is_own = first != SESSION_CATALOG and spark.conf.get(f"spark.sql.catalog.{first}", None)
    if not dot or is_own or _session_catalog_lasts(spark):
        return
    raise JobFailed(
        f"--table {table} names a table of a catalog, and this Spark has only one in memory. "
        "Configure one: --conf spark.sql.catalogImplementation=hive, or --conf "
        "spark.sql.catalog.NAME=CLASS."
    )


def _session_catalog_lasts(spark: SparkSession) -> bool:
    if spark.conf.get(f"spark.sql.catalog.{SESSION_CATALOG}", "") != DELTA_CATALOG:
        return True
    return spark.conf.get("spark.sql.catalogImplementation") != "in-memory"
