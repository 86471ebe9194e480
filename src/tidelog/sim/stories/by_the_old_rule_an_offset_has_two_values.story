# By the old rule an offset has two values
# The second problem of KIP-101. All brokers lose power, and the first one to return is elected
# without its tail. By the old rule the other one keeps all records below its watermark, although the
# new leader has written others there: the two logs never agree again.

brokers 2
mutant truncate-to-hw
topic orders on 1 2 min-isr 1 unclean.leader.election.enable=true
write 2
wait 6 s
kill 1
power off 2
start 2
wait until leader of orders-0 is 2
write 3
start 1
wait until isr of orders-0 is 1 2
wait 1 s
expect logs of orders-0 differ
