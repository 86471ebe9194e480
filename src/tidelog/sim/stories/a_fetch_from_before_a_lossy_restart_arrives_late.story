# A fetch from before a lossy restart arrives late
# F15, KIP-903. Broker 2 sends a fetch, is killed, loses its log and restarts. Only then does the
# fetch arrive. If the leader counted it, 2 would be in sync with an empty log. Today a fetch carries
# the broker epoch, and so does the request to change the in-sync set.

brokers 3
topic orders on 1 2 3 min-isr 2
write 3
wait 1 s

# The next fetch of 2 is delayed in the network.
cut 2 to 1
wait 1 s
kill 2
wait until isr of orders-0 is 1 3
power off 2
start 2
wait until 2 is not fenced
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
