# A follower does not cut its log to its watermark
# F01, KIP-101. A follower learns the high watermark one fetch late. If it truncated its log there
# whenever it follows a new leader, it would drop a committed record. If it is then elected before it
# fetches that record again, the record is lost. Today it truncates where the epochs diverge.

brokers 3
topic orders on 1 2 3 min-isr 2

# All three replicas hold three records, but 2 and 3 do not know yet that the third is committed.
write 3

# The followers cannot fetch from each other.
cut 2 from 3
kill 1
wait until leader of orders-0 is 2
wait 200 ms

# Broker 3 now follows 2; under the old rule it has truncated its log to its own watermark.
kill 2
wait until leader of orders-0 is 3
heal
expect lost 0
start all
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
