"""Request and response bodies: kio's classes, every version, lifted to one canonical shape."""
