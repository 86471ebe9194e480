# A fetch from an older epoch commits what is cut later
# F04, KIP-320. Broker 3 has missed two elections. It still fetches from 1, which has truncated its
# log and leads again, and seems to hold records that it lacks. A leader that counts such a fetch
# commits a write that no other replica has. Today a fetch carries its leader epoch and is refused.

brokers 3
set broker.session.timeout.ms 20000
topic orders on 1 2 3 min-isr 2
write 1
wait 1 s

# A record of epoch 0 reaches 3, but not 2.
cut 1 from 2
begin write acks 1
wait 50 ms

# From here on 3 receives nothing from the controller.
kill 1
heal
cut 3 from 101
wait until leader of orders-0 is 2

# 1 returns, follows 2, and truncates the record that 2 never received.
start 1
wait until isr of orders-0 has 1
wait 500 ms
kill 2
wait until leader of orders-0 is 1
wait 200 ms

# 1 leads in epoch 2 and appends another record at that offset; 3 holds the old one and fetches past it.
write 1
kill 1
heal
wait until leader of orders-0 is 3
start all
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
