"""Request and response bodies: kio's classes of every version, converted to one canonical shape."""
