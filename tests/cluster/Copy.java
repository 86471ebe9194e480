import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.KafkaException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.InvalidProducerEpochException;
import org.apache.kafka.common.errors.ProducerFencedException;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Copies "input" to "output" in transactions, and aborts every fifth one, until it has it all. */
public class Copy {
    public static void main(String[] args) throws Exception {
        String bootstrap = args[0];
        long wanted = Long.parseLong(args[1]);
        int seen = 0;
        while (seen < wanted) {
            seen = run(bootstrap, wanted);
        }
        System.out.println("done");
    }

    /** One life of the producer. Returns how many records of the input are committed. */
    static int run(String bootstrap, long wanted) {
        Properties consuming = new Properties();
        consuming.put("bootstrap.servers", bootstrap);
        consuming.put("group.id", "copy");
        consuming.put("isolation.level", "read_committed");
        consuming.put("enable.auto.commit", "false");
        consuming.put("auto.offset.reset", "earliest");
        consuming.put("max.poll.records", "100");
        Properties producing = new Properties();
        producing.put("bootstrap.servers", bootstrap);
        producing.put("transactional.id", "copy");
        var bytes = new ByteArrayDeserializer();
        var raw = new ByteArraySerializer();
        int turn = 0;
        try (var consumer = new KafkaConsumer<byte[], byte[]>(consuming, bytes, bytes);
                var producer = new KafkaProducer<byte[], byte[]>(producing, raw, raw)) {
            producer.initTransactions();
            consumer.subscribe(List.of("input"));
            while (true) {
                ConsumerRecords<byte[], byte[]> batch = consumer.poll(Duration.ofMillis(200));
                if (batch.isEmpty()) {
                    long done = committed(consumer);
                    if (done >= wanted) return (int) done;
                    continue;
                }
                producer.beginTransaction();
                try {
                    Map<TopicPartition, OffsetAndMetadata> next = new HashMap<>();
                    for (ConsumerRecord<byte[], byte[]> one : batch) {
                        producer.send(new ProducerRecord<>("output", one.partition(), one.key(), one.value()));
                        next.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
                    }
                    producer.sendOffsetsToTransaction(next, consumer.groupMetadata());
                    if (++turn % 5 == 0) throw new KafkaException("every fifth transaction is aborted");
                    producer.commitTransaction();
                } catch (ProducerFencedException | InvalidProducerEpochException fenced) {
                    return 0;
                } catch (KafkaException error) {
                    producer.abortTransaction();
                    rewind(consumer);
                }
            }
        } catch (KafkaException error) {
            System.err.println(error);
            return 0;
        }
    }

    static void rewind(KafkaConsumer<byte[], byte[]> consumer) {
        var known = consumer.committed(consumer.assignment());
        for (TopicPartition one : consumer.assignment()) {
            OffsetAndMetadata at = known.get(one);
            if (at == null) consumer.seekToBeginning(List.of(one));
            else consumer.seek(one, at);
        }
    }

    static long committed(KafkaConsumer<byte[], byte[]> consumer) {
        long total = 0;
        for (OffsetAndMetadata at : consumer.committed(consumer.assignment()).values()) {
            if (at != null) total += at.offset();
        }
        return total;
    }
}
