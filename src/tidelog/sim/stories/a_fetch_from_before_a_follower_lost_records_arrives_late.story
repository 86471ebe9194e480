# A fetch from before a follower lost records arrives late
# F15. Broker 2 shuts down, and a bit of its log flips. At its next start it is in sync at once, and
# finds the damage only later, when it verifies its log. A fetch from before that is delayed in the
# network. If the leader counted it, 2 would be in sync with a truncated log. Today the controller
# starts a new leader epoch when a follower reports lost records, and the leader refuses the fetch.

brokers 3
set replica.fetch.wait.max.ms 50
topic orders on 1 2 3 min-isr 2
write 2000
wait 1 s
shut down 2
flip a bit of 00000000000000000000.log of orders-0 on 2
start 2
wait until isr of orders-0 is 1 2 3
cut 2 to 1
wait 600 ms
wait until isr of orders-0 is 1 3
wait 500 ms

# The old fetch arrives; nothing that 1 sends reaches 2.
heal
cut 1 to 2
wait 500 ms
kill 1
wait until leader of orders-0 is not 1
expect lost 0
heal
start 1
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
