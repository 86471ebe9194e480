# A record of an older epoch is not committed by counting copies
# F83, figure 8 of the Raft paper. Broker 1 writes a record that only 2 receives. Broker 3 is elected
# by 3, 4 and 5, and writes another record, which no other replica receives. Then 1 leads again, and
# a majority gets its old record. If that alone committed the record, 3 could still be elected,
# because its last record has a newer epoch. So a leader commits old records only together with a
# record of its own epoch.

brokers 5
topic orders on 1 2 3 4 5 tidelog.commit.rule=quorum
write 1
wait 2 s

# Only 1 and 2 hold the second record.
cut 1 from 3
cut 1 from 4
cut 1 from 5
write 1 acks 1
wait 1 s
isolate 1 2
cut 3 from 4
cut 3 from 5
wait until leader of orders-0 is 3

# Only 3 holds its record, and nobody acknowledges it.
begin write acks all at 3
shut down 3
heal
wait until leader of orders-0 is 1
wait 2 s
expect end of orders-0 on 4 is 3

# 3 returns with its record, and 1 and 2 are gone.
isolate 1 2
start 3
wait until leader of orders-0 is not 1
wait until leader of orders-0 is not none
wait 2 s
heal
wait until isr of orders-0 is 1 2 3 4 5
wait 2 s
expect lost 0
expect logs of orders-0 are equal
