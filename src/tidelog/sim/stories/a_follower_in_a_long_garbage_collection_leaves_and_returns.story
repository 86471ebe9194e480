# A follower in a long garbage collection leaves the in-sync set and returns
# Broker 3 is paused, as a process is in a full garbage collection: it is alive but does not fetch.
# Writes wait for it until it has lagged for replica.lag.time.max.ms. The leader then asks the
# controller to shrink the in-sync set, and to expand it when the broker has caught up.

brokers 3
set replica.lag.time.max.ms 2000
set broker.session.timeout.ms 60000
topic orders on 1 2 3 min-isr 2
write 3
wait 1 s
expect isr of orders-0 is 1 2 3

pause 3

# Broker 3 is still in sync, so the high watermark cannot advance: the write is in two logs and waits.
begin write
expect end of orders-0 on 2 is 4
expect watermark of orders-0 on 1 is 3

# The lag time is over. The write is committed without 3.
wait until isr of orders-0 is 1 2
expect watermark of orders-0 on 1 is 4
write 3

# Broker 3 resumes, catches up, and is in sync again.
resume 3
wait until isr of orders-0 is 1 2 3
wait 1 s
expect logs of orders-0 are equal
expect isr changes of orders-0 are 2
expect lost 0
