# The transaction of a dead producer is aborted
# A producer dies in the middle of a transaction. Consumers that read committed records wait at its
# first record, until the coordinator aborts the transaction.

brokers 3
set transaction.abort.timed.out.transaction.cleanup.interval.ms 1000
topic __transaction_state on 1 2 3 min-isr 2
topic orders on 1 2 3 min-isr 2
wait 1 s
start the producer
write in the transaction
expect orders-0 has an open transaction
# The producer has died, and its timeout is 5 seconds.
wait 10 s
expect orders-0 has no open transaction
read committed
expect visible records are 0
