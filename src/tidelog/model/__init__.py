"""What every layer speaks of: ids, errors, events, effects and the disk port. Imports nothing of ours."""
