# A burst does not make the in-sync set flap
# replica.lag.max.messages, removed in 0.9. Followers that fetch all the time are behind by one burst.
# Measured in records they are out of sync, and in sync again when the burst is over: the set
# shrinks and grows with the load. Measured in time, they are simply in sync.

brokers 3
set replica.lag.time.max.ms 2000
delay 20 ms
topic orders on 1 2 3 min-isr 2
burst 5000 every 25 ms for 1 s
wait 1500 ms
burst 5000 every 25 ms for 1 s
wait 1500 ms
burst 5000 every 25 ms for 1 s
wait 3 s
expect isr changes of orders-0 are 0
expect isr of orders-0 is 1 2 3
