# The high watermark is the least log end offset in sync
# Three replicas are in sync with different log end offsets. The leader has five records, one follower
# three, the other four. Consumers see only what all of them hold: the high watermark is 3.

brokers 3
topic orders on 1 2 3 min-isr 2

# The first three records reach all replicas.
write 3
wait 1 s
expect watermark of orders-0 on 1 is 3

# The fourth reaches 3 but not 2; the fifth reaches neither. The writer waits only for the leader (acks=1).
cut 1 to 2
write 1 acks 1
wait 50 ms
cut 1 to 3
write 1 acks 1
wait 50 ms
expect end of orders-0 on 1 is 5
expect end of orders-0 on 2 is 3
expect end of orders-0 on 3 is 4
expect watermark of orders-0 on 1 is 3

# The followers fetch again. Each fetch reports an offset, and the high watermark follows the slowest.
heal
wait until watermark of orders-0 on 1 is 5

# A follower learns the high watermark from the response to its next fetch.
wait until watermark of orders-0 on 2 is 5
wait until watermark of orders-0 on 3 is 5
expect isr of orders-0 is 1 2 3
