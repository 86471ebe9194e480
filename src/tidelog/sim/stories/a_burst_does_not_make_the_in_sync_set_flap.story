# A burst does not make the in-sync set flap
# replica.lag.max.messages, removed in Kafka 0.9. Followers that fetch continuously are one burst
# behind. If the lag is measured in records, they leave the in-sync set and join it again after each
# burst: the set shrinks and grows with the load. If it is measured in time, they stay in sync.

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
