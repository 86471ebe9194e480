# A partition is given up before it is assigned
# A new member gets a partition when its owner has confirmed that it gave it up. Until then, the new
# member waits, so that no record is handled by two members. A failover changes nothing about that.

brokers 3
topic __consumer_offsets on 1 2 3 min-isr 2
topic orders on 1 2 3
topic payments on 1 2 3
wait 1 s
member A joins
wait 2 s

# One partition moves to the second member, but the first one does not know that yet.
member B joins
expect no partition has two owners

# The next coordinator knows who still owns the partition.
kill 1
wait until leader of __consumer_offsets-0 is 2
wait 1 s
member B sends a heartbeat
expect no partition has two owners

# The first member gives the partition up, confirms it, and the second one gets it.
member A sends a heartbeat
member A reports its partitions
member B sends a heartbeat
expect no partition has two owners
