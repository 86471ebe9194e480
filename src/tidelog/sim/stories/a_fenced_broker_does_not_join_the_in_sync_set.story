# A fenced broker does not join the in-sync set
# F16, KIP-841. Broker 2 reaches the leader but not the controller: it is fenced, and out of the
# in-sync set. It still fetches, and is not behind. If the leader added it again, the set would hold
# a broker that cannot be elected, and that nobody takes out when it dies.

brokers 3
topic orders on 1 2 3 min-isr 2
write 1
cut 2 from 101
wait until 2 is fenced
wait 2 s
expect isr of orders-0 is 1 3
write 3
expect lost 0

# It is added when the controller has taken it back.
heal
wait until isr of orders-0 is 1 2 3
expect lost 0
