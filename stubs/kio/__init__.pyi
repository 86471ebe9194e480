"""Looser types for a few of kio's modules; mypy finds all the others in the installed package.

kio models every integer and name as a phantom type (`i32`, `TopicName`), which a plain `int` or
`str` satisfies at run time but not under mypy: every value would need `i32(...)` around it. Here
these names are aliases of the plain types, so that `FetchPartition(partition=0, fetch_offset=5)` is
checked field by field and costs nothing. `mypy_path` puts these files before the installed ones.
"""
