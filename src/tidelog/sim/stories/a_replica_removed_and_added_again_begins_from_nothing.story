# A replica that is removed and added again begins from nothing
# F14. A replica is moved away from a broker and back to it; its log is now empty. A leader that
# remembers its old end offset adds it to the in-sync set at once. Today only a fetch in the leader's
# current epoch counts.

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

# Its first fetch, at offset 0, arrives; the response does not.
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
