# A fenced broker does not join the in-sync set
# F16, KIP-841. Broker 2 reaches the leader but not the controller, so it is fenced and leaves the
# in-sync set. It still fetches and is caught up. If the leader added it again, the set would contain
# a broker that cannot be elected, and that no fencing removes when it fails.

brokers 3
topic orders on 1 2 3 min-isr 2
write 1
cut 2 from 101
wait until 2 is fenced
wait 2 s
expect isr of orders-0 is 1 3
write 3
expect lost 0

# The leader adds it after the controller has unfenced it.
heal
wait until isr of orders-0 is 1 2 3
expect lost 0
