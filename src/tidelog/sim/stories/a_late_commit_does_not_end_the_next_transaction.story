# A late commit does not end the next transaction
# A client repeats a commit that the network has delayed. The first one arrives after the client has
# begun its next transaction. The epoch of the request shows that it belongs to the last one.

brokers 3
topic __transaction_state on 1 2 3 min-isr 2
topic orders on 1 2 3 min-isr 2
wait 1 s
start the producer
write in the transaction
commit the transaction
wait 1 s
write in the transaction
send the last commit again
wait 1 s
read committed
expect visible records are 1
abort the transaction
read committed
expect visible records are 1
