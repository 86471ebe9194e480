# A stale watermark does not let in a replica that lacks a committed record
# F13. A new leader's own watermark may lag behind what its predecessor committed. If reaching it
# were enough to join the in-sync set, a replica could join, and be elected, that lacks a committed
# record. Today it must also reach the point where the leader's epoch begins.

brokers 3
topic orders on 1 2 3 min-isr 2
write 1
wait 1 s
kill 3
wait until isr of orders-0 is 1 2

# 1 and 2 have committed it, but 2 does not know that yet.
write 1
kill 1
wait until leader of orders-0 is 2

# 3 has restarted and is registered.
cut 2 from 3
start 3
wait until 3 is not fenced
wait 500 ms

# 3 fetches the records that it lacks. The fetch arrives, the response does not.
heal
wait until 3 has fetched orders-0
cut 2 to 3
wait 500 ms

# Every member of the in-sync set may now be elected.
kill 2
wait 3 s
heal
start all
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
