# A follower does not cut its log to its watermark
# F01, KIP-101. A follower hears of the high watermark one fetch late. If it cut its log there
# whenever it follows a new leader, it would drop a record that is committed; should it be elected
# before it has fetched that record again, the record is gone. Today it cuts where the epochs part.

brokers 3
topic orders on 1 2 3 min-isr 2

# All three replicas hold three records, but 2 and 3 have not heard yet that the third is committed.
write 3

# Neither of the followers can fetch from the other.
cut 2 from 3
kill 1
wait until leader of orders-0 is 2
wait 200 ms

# Broker 3 follows 2 now: the old rule has cut its log to its own watermark.
kill 2
wait until leader of orders-0 is 3
heal
expect lost 0
start all
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
