"""The group coordinators on this node, and how they are loaded."""
