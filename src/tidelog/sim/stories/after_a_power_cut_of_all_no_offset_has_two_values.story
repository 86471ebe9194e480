# After a power cut of all no offset has two values
# F02, KIP-101. All brokers lose power. The first replica to return is elected although it has lost
# its log, and writes at offsets that the other log also contains. Today the other replica truncates
# where the epochs diverge. By the old rule it keeps all below its watermark: one offset, two values.

brokers 2
topic orders on 1 2 min-isr 1 unclean.leader.election.enable=true

# Both replicas hold two records, know that they are committed, and have checkpointed that.
write 2
wait 6 s

# Power is lost. Broker 1 happens to have flushed its log, broker 2 has not.
kill 1
power off 2
start 2
wait until leader of orders-0 is 2

# An unclean election, which the topic allows: the records acknowledged before are lost.
write 3
start 1
wait until isr of orders-0 is 1 2
wait 1 s

# The records are lost on both replicas, so the replicas agree on every offset.
expect logs of orders-0 are equal
