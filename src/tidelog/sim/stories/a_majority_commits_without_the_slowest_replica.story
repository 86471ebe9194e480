# A majority commits without the slowest replica
# Under tidelog.commit.rule=quorum a record is committed when two of three replicas hold it. A replica
# that receives nothing delays no write, although it is still in the in-sync set. Under the ISR rule
# the same writes wait until the replica has left the set.

brokers 3
topic orders on 1 2 3 tidelog.commit.rule=quorum
cut 1 from 3
write 3
expect acknowledged 3
expect isr of orders-0 is 1 2 3
expect end of orders-0 on 3 is 0
heal
wait 2 s
expect lost 0
expect logs of orders-0 are equal
