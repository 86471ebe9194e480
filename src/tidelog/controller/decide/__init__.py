"""The decisions of the active controller: a request and an image give records and a response."""
