# acks=1 loses what only the leader had
# With acks=1 the leader alone answers. A record that no follower has fetched yet when the leader dies
# was acknowledged, and is gone. acks=0 is worse, acks=all with two in sync is safe.

brokers 3
topic orders on 1 2 3 min-isr 2
write 2
wait 1 s

# The followers do not hear from the leader for a moment.
cut 1 to 2
cut 1 to 3
write 2 acks 1
kill 1
wait until leader of orders-0 is 2
expect lost 2
heal
start 1

# The old leader comes back with two records more than the new one, and cuts them.
wait until isr of orders-0 is 1 2 3
wait 1 s
expect logs of orders-0 are equal
expect lost 2
