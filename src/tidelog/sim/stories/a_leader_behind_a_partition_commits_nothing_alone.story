# A leader behind a partition commits nothing alone
# F29. The leader and one follower are cut off from the controller and from the third replica, which
# is elected. The old leader does not know that. If it could drop the unreachable replica by itself,
# it could commit with the follower that still fetches from it. Today the controller must agree.

brokers 3
set replica.lag.time.max.ms 1000
topic orders on 1 2 3 min-isr 2
write 1
cut 1 from 101
cut 2 from 101
cut 1 from 3
cut 2 from 3

# A client with old metadata writes to the old leader, which still considers itself the leader.
begin write at 1
wait until leader of orders-0 is 3
heal
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
