# A voter back from a partition does not depose the controller
# F36, KIP-996. Controller 103 hears nothing for a while. If it opened a new epoch each time it
# gives up waiting, its first words after the partition would depose a healthy leader. Today it asks
# first whether it could win, and who hears from the leader says no.

brokers 3
controllers 3
topic orders on 1 2 3 min-isr 2
expect quorum epoch is 1
isolate 103
wait 20 s
heal
wait 5 s
write 1
expect quorum epoch is 1
