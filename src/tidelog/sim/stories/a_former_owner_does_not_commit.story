# A former owner does not commit
# A commit carries the member epoch of its sender. When another member owns the partition, a commit
# that the former owner has sent late is refused, and the offset does not go back.

brokers 3
topic __consumer_offsets on 1 2 3 min-isr 2
topic orders on 1 2 3
topic payments on 1 2 3
wait 1 s
member A joins
member A commits offset 5 of orders-0
wait 2 s

# The partition moves to the second member, which goes on from offset 5.
member B joins
member A sends a heartbeat
member A reports its partitions
member B sends a heartbeat
expect no partition has two owners
member B commits offset 9 of orders-0

# A thread of the first member was slow: its commit has the epoch in which it owned the partition.
member A commits offset 6 of orders-0 late
fetch the offset of orders-0
expect no commit of a member is lost
