# A leader back before it was missed does not lead with what is left
# F17. The leader's machine loses power and returns within a second, before its session expires. If
# it stayed in the in-sync set, it would lead with a log that has lost its tail, and the followers
# would truncate theirs to match. Today each new run of a broker must rejoin the in-sync sets.

brokers 3
topic orders on 1 2 3 min-isr 2
write 3
power off 1
start 1
wait 3 s
expect lost 0
wait until isr of orders-0 is 1 2 3
write 1
wait 1 s
expect lost 0
expect logs of orders-0 are equal
