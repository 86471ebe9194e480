# A replica that is removed and added again begins from nothing
# F14. A replica is taken from a broker and given back to it; its log is empty now. A leader that
# remembers how far it was lets it into the in-sync set at once. Today what counts is a fetch that
# was seen in this epoch of the leader.

brokers 3
topic orders on 1 2 3 min-isr 2
write 3
wait 1 s
move orders-0 to 1 3
wait until replicas of orders-0 are 1 3
wait 500 ms
cut 1 from 2
move orders-0 to 1 2 3
wait 500 ms
heal

# Its first fetch arrives, from offset 0; the answer does not.
wait until 2 has fetched orders-0
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
