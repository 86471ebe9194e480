# acks=1 loses what only the leader had
# With acks=1 only the leader acknowledges. A record that no follower has fetched when the leader
# fails was acknowledged, and is lost. acks=0 is worse; acks=all with two in-sync replicas is safe.

brokers 3
topic orders on 1 2 3 min-isr 2
write 2
wait 1 s

# The followers receive nothing from the leader for a moment.
cut 1 to 2
cut 1 to 3
write 2 acks 1
kill 1
wait until leader of orders-0 is 2
expect lost 2
heal
start 1

# The old leader returns with two more records than the new one, and truncates them.
wait until isr of orders-0 is 1 2 3
wait 1 s
expect logs of orders-0 are equal
expect lost 2
