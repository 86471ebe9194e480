"""The active controller on this node, and the way of a broker to the active controller."""
