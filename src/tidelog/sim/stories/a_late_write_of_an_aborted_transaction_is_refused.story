# A late write of an aborted transaction is refused
# A write that the network has delayed arrives after the transaction was aborted. If the leader
# appended it, no marker would ever follow, and readers of committed records would wait for ever.

brokers 3
topic __transaction_state on 1 2 3 min-isr 2
topic orders on 1 2 3 min-isr 2
wait 1 s
start the producer
write in the transaction
abort the transaction
wait 1 s
write late in the last transaction
wait 1 s
expect orders-0 has no open transaction
read committed
expect visible records are 0
