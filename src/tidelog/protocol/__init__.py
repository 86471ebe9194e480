"""Frames, message codecs and the record batch header. Does no I/O.

    framing                         a byte stream becomes frames
    headers, messages               a frame becomes a request or a response, and back
      schema, reader                kio's classes as data; bytes become one of them
      canonical, reshape, versions  any version of a message becomes the one shape that we handle
    produce, fetch                  hand-tuned codecs of the data plane, on `pieces`
    batch                           the header of a record batch, which the data plane needs
    records, compression            what is inside a batch, for internal logs and tools
    metadata_records, metadata_codec    the records of the metadata log

Bytes that are no message raise `MalformedMessage`, and nothing else.
"""
