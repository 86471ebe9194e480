# Writes are refused while too few are in sync
# min.insync.replicas=2, and one replica is left. A write with acks=all is refused with an error. A
# write with acks=1 is accepted, but no consumer sees it until two replicas are in sync again.

brokers 3
topic orders on 1 2 3 min-isr 2
write 1
kill 2
kill 3
wait until isr of orders-0 is 1
write 1
expect end of orders-0 on 1 is 1
write 1 acks 1
expect watermark of orders-0 on 1 is 1
start 2
wait until isr of orders-0 is 1 2
wait until watermark of orders-0 on 1 is 2
write 1
expect lost 0
