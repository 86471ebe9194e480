# After a power cut of all no offset has two values
# F02, KIP-101. Everyone loses power. The replica that is back first is elected although it has lost
# its log, and writes at offsets that the other one's log has, too. Today the other one is cut where
# the epochs part. By the old rule it keeps what lies below its watermark: one offset, two values.

brokers 2
topic orders on 1 2 min-isr 1 unclean.leader.election.enable=true

# Both replicas hold two records, know that they are committed, and have noted it on disk.
write 2
wait 6 s

# The power goes. Broker 1 happens to have written its log through, broker 2 has not.
kill 1
power off 2
start 2
wait until leader of orders-0 is 2

# An unclean election: what was acknowledged before is lost, and the topic was made to allow that.
write 3
start 1
wait until isr of orders-0 is 1 2
wait 1 s

# Lost is lost, but then for everyone: the replicas agree on every offset.
expect logs of orders-0 are equal
