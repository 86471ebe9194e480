# One lookup is not enough after two quick elections
# F03, KIP-279. After two quick elections a follower holds records of an epoch that its new leader
# does not know. The end offset that the leader returns lies after the point where the two logs
# diverge: a follower that truncates there and does not ask again keeps different records.

brokers 3
topic orders on 1 3 2 min-isr 1

# All replicas hold the first record.
write 1
wait 1 s

# Epoch 0: four more reach 2, but not 3.
cut 1 from 3
write 4 acks 1
wait 100 ms

# Epoch 1: 3 is still in sync, leads, and accepts three writes that no other replica receives.
cut 2 from 3
kill 1
wait until leader of orders-0 is 3
write 3 acks 1

# Epoch 2: 2 leads, with four records of epoch 0 where 3 has three of epoch 1.
kill 3
wait until leader of orders-0 is 2
write 1 acks 1
heal

# 3 asks for the end of epoch 1. 2 does not know it and returns the end of epoch 0, which is 5.
start 3
wait until isr of orders-0 is 2 3
start 1
wait until isr of orders-0 is 1 2 3
wait 1 s
expect logs of orders-0 are equal
