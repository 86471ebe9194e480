"""One broker and/or controller as one synchronous object: events in, outbound out."""
