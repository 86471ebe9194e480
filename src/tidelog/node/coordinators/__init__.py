"""The group coordinators on this node, and the code that loads them."""
