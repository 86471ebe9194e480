"""The simulated world: time, machines, disks, networks, clocks."""
