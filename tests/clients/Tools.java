import java.io.BufferedInputStream;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.DataInputStream;
import java.io.IOException;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's command-line tools one after the other in one process. An input line has the
 * number of bytes for the tool's standard input, a class and its arguments, separated by tabs; then
 * these bytes follow. The output is the exit status, the number of printed bytes, and these bytes.
 */
class Tools {
    public static void main(String[] none) throws Exception {
        PrintStream out = System.out;
        // One stream for all tools, because Scala's tools keep the first one that they find.
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream both = new PrintStream(said, true, "UTF-8");
        System.setOut(both);
        System.setErr(both);
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in));
        for (String line = line(in); line != null; line = line(in)) {
            String[] words = line.split("\t", -1);
            System.setIn(new ByteArrayInputStream(in.readNBytes(Integer.parseInt(words[0]))));
            said.reset();
            int status = run(words[1], Arrays.copyOfRange(words, 2, words.length));
            both.flush();
            out.printf("%d %d%n", status, said.size());
            said.writeTo(out);
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** The next line, or null at the end. */
    static String line(DataInputStream in) throws IOException {
        ByteArrayOutputStream line = new ByteArrayOutputStream();
        for (int next = in.read(); next != '\n'; next = in.read()) {
            if (next < 0) {
                return null;
            }
            line.write(next);
        }
        return line.toString(StandardCharsets.UTF_8);
    }

    /** Run a tool in a new thread: after an exit no code may run, not even a finally block. */
    static int run(String name, String[] arguments) throws Exception {
        CompletableFuture<Integer> ended = new CompletableFuture<>();
        Exit.setExitProcedure((status, message) -> {
            ended.complete(status);
            while (true) {
                try {
                    Thread.sleep(Long.MAX_VALUE);
                } catch (InterruptedException ignored) {
                    continue;
                }
            }
        });
        Thread tool = new Thread(() -> {
            try {
                Class.forName(name).getMethod("main", String[].class).invoke(null, (Object) arguments);
                ended.complete(0);
            } catch (InvocationTargetException thrown) {
                thrown.getCause().printStackTrace(System.err);
                ended.complete(1);
            } catch (ReflectiveOperationException wrong) {
                ended.completeExceptionally(wrong);
            }
        });
        tool.setDaemon(true);
        tool.start();
        return ended.get();
    }
}
