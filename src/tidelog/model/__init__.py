"""What every layer speaks of: ids, errors, events, effects, the disk port. Imports none of ours."""
