"""The active controller on this node, and a broker's requests to the active controller."""
