"""The active controller's decisions: from a request and an image to records and a response."""
