# An unclean election loses what the others never had
# Only broker 1 is in sync, and it dies. Broker 2 is alive but behind. With
# unclean.leader.election.enable=true it leads all the same: writes go on, and what it lacks is lost,
# also for broker 1 when it returns. Without, the partition would wait for broker 1.

brokers 3
topic orders on 1 2 min-isr 1 unclean.leader.election.enable=true
write 2
kill 2
wait until isr of orders-0 is 1

# Acknowledged by everyone in sync, which is broker 1 alone.
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
