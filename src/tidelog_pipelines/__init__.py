"""The data pipeline: Spark jobs (PySpark) for any cluster that supports Kafka's protocol.

`transformations` are pure functions from DataFrame to DataFrame, `sources` and `sinks` read and
write, and `jobs` are thin entry points, also for spark-submit. Invariant: nothing here imports
`tidelog`, so every job runs on Apache Kafka unchanged, and no session starts at import.
"""
