"""Frames, message codecs and the record batch header. No module here does I/O.

    framing                         splits a byte stream into frames
    headers, messages               convert frames to requests and responses, and back
      schema, reader, writer        decode bytes to instances of kio's classes, and encode them
      canonical, reshape, versions  convert any message version to its canonical shape, and back
    produce, fetch                  hand-tuned codecs of the data plane, which use `pieces`
    batch                           the header of a record batch, which the data plane needs
    records, compression            the records of a batch, for internal logs and tools
    metadata                        the records of the metadata log, and their codec

Invariant: bytes that are not a valid message raise `MalformedMessage` and no other exception.
"""
