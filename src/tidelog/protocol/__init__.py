"""Frames, message codecs and the record batch header. No module here does I/O.

    framing                         a byte stream becomes frames
    headers, messages               a frame becomes a request or a response, and back
      schema, reader, writer        kio's classes as data; from bytes to an instance, and back
      canonical, reshape, versions  any version of a message to its canonical shape, and back
    produce, fetch                  hand-tuned codecs of the data plane, on `pieces`
    batch                           the header of a record batch, which the data plane needs
    records, compression            the records of a batch, for internal logs and tools
    metadata                        the records of the metadata log, and their codec

Invariant: bytes that are not a valid message raise `MalformedMessage` and no other exception.
"""
