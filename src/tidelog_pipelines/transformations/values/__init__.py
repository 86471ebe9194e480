"""Decodes the values of records, by formats and schemas, into the columns of tables."""
