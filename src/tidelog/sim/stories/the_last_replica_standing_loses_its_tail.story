# The last replica standing loses its tail
# F18, F43, KIP-966. Two of three brokers shut down cleanly, so only the third one is in sync. Its
# machine loses power and its log. If only the last member of the set could lead again, the others
# would truncate their good logs to its empty one. Today replicas that leave the set while it is
# smaller than min.insync.replicas stay eligible.

brokers 3
topic orders on 1 2 3 min-isr 2
write 3
shut down 2
shut down 3
wait until isr of orders-0 is 1

# Too few replicas are in sync: 1 refuses writes with acks=all.
write 1
power off 1
start 2 3
wait 3 s
start 1
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
