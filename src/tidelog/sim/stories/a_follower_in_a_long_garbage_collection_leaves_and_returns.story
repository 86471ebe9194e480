# A follower in a long garbage collection leaves the in-sync set and returns
# Broker 3 stands still, as a process does in a Full GC: it is alive, but it fetches nothing. Writes
# wait for it until it has been behind for replica.lag.time.max.ms; then the leader asks the
# controller to shrink the in-sync set. When it has caught up again, the leader asks to expand it.

brokers 3
set replica.lag.time.max.ms 2000
set broker.session.timeout.ms 60000
topic orders on 1 2 3 min-isr 2
write 3
wait 1 s
expect isr of orders-0 is 1 2 3

pause 3

# Broker 3 is still in the set, so the watermark cannot move: the write is in two logs and waits.
begin write
expect end of orders-0 on 2 is 4
expect watermark of orders-0 on 1 is 3

# Time is up. Without 3 the write is committed.
wait until isr of orders-0 is 1 2
expect watermark of orders-0 on 1 is 4
write 3

# It goes on, catches up, and is in sync again.
resume 3
wait until isr of orders-0 is 1 2 3
wait 1 s
expect logs of orders-0 are equal
expect isr changes of orders-0 are 2
expect lost 0
