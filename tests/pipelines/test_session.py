"""All jobs use one Spark session."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from pyspark.sql import SparkSession

from tidelog_pipelines.jars import cache_directory


def test_spark_makes_its_warehouse_where_jars_are_kept_not_where_a_job_is_called(
    spark: SparkSession,
) -> None:
    warehouse = spark.conf.get("spark.sql.warehouse.dir")
    assert warehouse is not None
    assert Path(unquote(urlsplit(warehouse).path)) == cache_directory() / "spark-warehouse"
