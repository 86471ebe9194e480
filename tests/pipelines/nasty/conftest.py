"""Odd values are decoded by generated code, as in a job, not by interpreted expressions."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

MODE = "spark.sql.codegen.factoryMode"


@pytest.fixture(scope="module")
def generated_code(spark: SparkSession) -> Iterator[None]:
    before = spark.conf.get(MODE)
    spark.conf.set(MODE, "FALLBACK")  # Spark's default
    yield
    spark.conf.set(MODE, before or "FALLBACK")
