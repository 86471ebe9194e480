# A replica that lost its tail does not count towards a majority
# F84. Under the quorum rule, 1 and 2 commit records that 3 lacks. Then 1 is cut off, and 2 loses power
# and its records. 2 and 3 are a majority, but neither has the records. If 2 counted, a leader without
# them would be elected. So the partition waits for 1.

brokers 3
topic orders on 1 2 3 tidelog.commit.rule=quorum
write 1
wait 2 s
cut 1 from 3
write 2
power off 2
isolate 1
start 2
wait until leader of orders-0 is none
wait 5 s
expect leader of orders-0 is none
heal
wait until isr of orders-0 is 1 2 3
wait 1 s
expect lost 0
expect logs of orders-0 are equal
