# An in-sync replica without a committed record is not elected
# F82. Under the quorum rule, 1 and 3 commit records that 2 lacks, and 2 is still in the in-sync set.
# When 1 dies, an election from the in-sync set would choose 2, and 3 would truncate the records.
# Instead the controller compares the log ends of a majority, and elects 3.

brokers 3
topic orders on 1 2 3 tidelog.commit.rule=quorum
cut 1 from 2
write 3
expect isr of orders-0 is 1 2 3
kill 1
wait until leader of orders-0 is not none
wait 1 s
expect leader of orders-0 is 3
expect lost 0
write 1
start 1
wait until isr of orders-0 is 1 2 3
heal
wait 2 s
expect lost 0
expect logs of orders-0 are equal
