import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.*;
import java.util.HexFormat;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.group.GroupCoordinatorRecordSerde;
import org.apache.kafka.server.common.ApiMessageAndVersion;

/**
 * Encodes records of the group coordinator with Kafka's own serializer. Each line of the input is
 * the name of the record, its key and its value in Kafka's JSON, separated by tabs. Each line of the
 * output is the key and the value in hex.
 */
public class Records {
    static final String GENERATED = "org.apache.kafka.coordinator.group.generated.";
    static final ObjectMapper JSON = new ObjectMapper();

    public static void main(String[] args) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        GroupCoordinatorRecordSerde serde = new GroupCoordinatorRecordSerde();
        for (String line; (line = in.readLine()) != null; ) {
            String[] fields = line.split("\t");
            CoordinatorRecord record = CoordinatorRecord.record(
                read(fields[0] + "Key", fields[1]),
                new ApiMessageAndVersion(read(fields[0] + "Value", fields[2]), (short) 0));
            HexFormat hex = HexFormat.of();
            System.out.println(
                hex.formatHex(serde.serializeKey(record)) + " " + hex.formatHex(serde.serializeValue(record)));
        }
    }

    static ApiMessage read(String name, String json) throws Exception {
        return (ApiMessage) Class.forName(GENERATED + name + "JsonConverter")
            .getMethod("read", JsonNode.class, short.class)
            .invoke(null, JSON.readTree(json), (short) 0);
    }
}
