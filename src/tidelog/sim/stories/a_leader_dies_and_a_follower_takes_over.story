# A leader dies and a follower takes over
# Three replicas, all in sync. The leader's process is killed; the controller elects the next
# member of the in-sync set. Nothing that was acknowledged is lost, and the old leader comes back
# as a follower.

brokers 3
topic orders on 1 2 3 min-isr 2

# Each write is acknowledged when all three replicas hold it.
write 5

# kill -9. The controller sees the closed connection and the refused port, so it does not wait for the session.
kill the leader
wait until leader of orders-0 is not 1
expect isr of orders-0 is 2 3

# The new leader continues where the first one stopped.
write 3
expect lost 0

# The old leader returns as a follower, catches up, and joins the in-sync set again.
start 1
wait until isr of orders-0 is 1 2 3
wait 1 s
expect logs of orders-0 are equal
expect lost 0
