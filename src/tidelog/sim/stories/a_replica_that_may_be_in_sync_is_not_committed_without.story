# A replica that may be in sync is not committed without
# F12. The leader asks the controller to add a replica. The controller does, but its response is lost.
# A leader that continues with the smaller set commits without a replica that can be elected. Today
# it counts every replica that may be in the controller's set: the maximal in-sync set.

brokers 3
topic orders on 1 2 3 min-isr 2
write 1
kill 2
wait until isr of orders-0 is 1 3
write 1

# 2 has restarted and is registered, but it cannot reach the leader yet.
cut 1 from 2
start 2
wait until 2 is not fenced
wait 500 ms

# 2 reaches the leader and catches up. The controller's response does not reach the leader.
heal
cut 101 to 1
wait until isr of orders-0 has 2

# 2 receives nothing more: a write that is acknowledged now is on 1 and 3 only.
cut 1 to 2
write 1
kill 1
wait until leader of orders-0 is 2
expect lost 0
heal
start 1
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
