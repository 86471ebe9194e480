# A leader back before it was missed does not lead with what is left
# F17. The leader's machine loses power and is back within a second: nobody has missed it. If it kept
# its place in the in-sync set it would lead with a log that has lost its tail, and the others would
# cut theirs to match. Today a new run of a broker must earn its places again.

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
