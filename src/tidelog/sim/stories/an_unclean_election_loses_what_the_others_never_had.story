# An unclean election loses what the others never had
# Only broker 1 is in sync, and it fails. Broker 2 is alive but lags. With
# unclean.leader.election.enable=true it becomes leader: writes continue, and the records that it
# lacks are lost, on broker 1 too when it returns. Otherwise the partition would wait for broker 1.

brokers 3
topic orders on 1 2 min-isr 1 unclean.leader.election.enable=true
write 2
kill 2
wait until isr of orders-0 is 1

# Acknowledged by all in-sync replicas, which is broker 1 alone.
write 3
kill 1
start 2
wait until leader of orders-0 is 2
expect lost 3
write 2
start 1
wait until isr of orders-0 is 1 2
wait 1 s
expect logs of orders-0 are equal
expect lost 3
