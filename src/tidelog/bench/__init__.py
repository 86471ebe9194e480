"""`tidelog bench`: measures Tidelog, and Apache Kafka beside it, with the same load."""
