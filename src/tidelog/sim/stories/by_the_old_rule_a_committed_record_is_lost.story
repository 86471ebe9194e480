# By the old rule a committed record is lost
# Kafka before KIP-101, as many articles still describe it: a replica that follows a new leader first
# truncates its log to its own high watermark. This story enables that rule, and it loses a record
# that all three replicas held.

brokers 3
mutant truncate-to-hw
topic orders on 1 2 3 min-isr 2

# All three hold three records. The followers know of only two committed records.
write 3
expect watermark of orders-0 on 1 is 3
expect watermark of orders-0 on 3 is 2
cut 2 from 3
kill 1

# Broker 3 now follows 2, truncates to its watermark, and cannot fetch the third record again.
wait until leader of orders-0 is 2
wait 200 ms
expect end of orders-0 on 3 is 2
kill 2
wait until leader of orders-0 is 3

# Broker 3 is in sync, so it is elected. The third record is on two machines, and is lost.
expect lost 1
heal
start all
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 1
