# A replica that has lost a segment does not lead without it
# F54. A follower stops in order, and while it is down a segment in the middle of its log is lost. Its
# end is where it was, so it is in sync as soon as it fetches, and the next leader: with a hole that
# nobody notices. Today a log is opened only as far as its segments follow each other. What is missing
# is reported, and the replica fetches it again before it counts.

brokers 3
topic orders on 1 2 3 min-isr 2 internal.segment.bytes=300
write 12
wait until isr of orders-0 is 1 2 3
wait 1 s
shut down 2
remove 00000000000000000004.log of orders-0 on 2
start 2
wait until isr of orders-0 is 1 2 3
shut down 1
wait until leader of orders-0 is 2
expect lost 0
start 1
wait until isr of orders-0 is 1 2 3
write 1
wait 1 s
expect lost 0
expect logs of orders-0 are equal
