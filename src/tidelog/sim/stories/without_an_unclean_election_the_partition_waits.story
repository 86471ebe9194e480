# Without an unclean election the partition waits
# Like the unclean election, but the topic does not allow one, which is the default. The partition has
# no leader until broker 1 returns, and no record is lost.

brokers 3
topic orders on 1 2 min-isr 1
write 2
kill 2
wait until isr of orders-0 is 1
write 3
kill 1
start 2
wait until leader of orders-0 is none
wait 5 s
expect leader of orders-0 is none
start 1
wait until leader of orders-0 is 1
wait until isr of orders-0 is 1 2
expect lost 0
