"""The formats of tables: Delta, Iceberg and Parquet."""
