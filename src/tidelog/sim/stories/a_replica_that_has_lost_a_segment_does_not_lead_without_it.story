# A replica that has lost a segment does not lead without it
# F54. A follower shuts down cleanly, and loses a segment in the middle of its log while it is down.
# Its end offset is unchanged, so it is in sync as soon as it fetches, and may lead with an undetected
# gap. Today a log is opened only up to the first missing segment. The gap is reported, and the
# replica fetches the missing records again before it counts.

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
