"""The runtime that all coordinators share: decide, append, replay, answer at the watermark."""
