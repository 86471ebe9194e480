"""The data pipeline: jobs on Spark, through PySpark, over any cluster that speaks Kafka's protocol.

`transformations` are pure functions from DataFrame to DataFrame; `sources` and `sinks` read and
write; `jobs` are thin, and each is an entry point for spark-submit, too. Nothing here imports
`tidelog`, so that every job runs on Apache Kafka unchanged, and no session starts at import.
"""
