# An offset commit is answered when it is committed
# A coordinator appends a commit to its log. Clients hear of it, and can read it, when all in-sync
# replicas have it. A failover therefore never takes back an offset that a client knows.

brokers 3
topic __consumer_offsets on 1 2 3 min-isr 2
topic orders on 1 2 3
wait 1 s
commit offset 5
fetch the offset
expect the fetched offset is 5

# The followers receive nothing from the coordinator, so the next commit stays on its log alone.
cut 1 to 2
cut 1 to 3
commit offset 7
fetch the offset
expect the fetched offset is 5

# The new coordinator has never seen offset 7.
kill 1
wait until leader of __consumer_offsets-0 is 2
wait 1 s
fetch the offset
expect the fetched offset is 5
expect no commit is lost
