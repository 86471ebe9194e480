# The next coordinator sends the markers
# The coordinator has answered a commit, and dies before the marker reaches the leader of the
# partition. Its successor finds the decision in its log, and sends the marker.

brokers 3
topic __transaction_state on 1 3 min-isr 1
topic orders on 2 3 min-isr 1
wait 1 s
start the producer
write in the transaction
# The marker cannot reach the leader of orders-0.
cut 1 to 2
commit the transaction
expect orders-0 has an open transaction
kill 1
wait until leader of __transaction_state-0 is 3
wait 2 s
expect orders-0 has no open transaction
read committed
expect visible records are 1
