"""Classic consumer groups: members join, sync, heartbeat and leave."""
