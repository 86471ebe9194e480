import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.util.Arrays;
import java.util.Scanner;
import java.util.concurrent.CompletableFuture;
import org.apache.kafka.common.utils.Exit;

/**
 * Runs Apache Kafka's command-line tools one after the other in one process: a line in is a class
 * and its arguments, parted by tabs; out come the exit status, the number of bytes, and the bytes
 * that the tool printed.
 */
class Tools {
    public static void main(String[] none) throws Exception {
        PrintStream out = System.out;
        // One stream for all of them: Scala's tools keep the one that they find first.
        ByteArrayOutputStream said = new ByteArrayOutputStream();
        PrintStream both = new PrintStream(said, true, "UTF-8");
        System.setOut(both);
        System.setErr(both);
        Scanner in = new Scanner(System.in, "UTF-8");
        while (in.hasNextLine()) {
            String[] words = in.nextLine().split("\t");
            said.reset();
            int status = run(words[0], Arrays.copyOfRange(words, 1, words.length));
            both.flush();
            out.printf("%d %d%n", status, said.size());
            said.writeTo(out);
            out.flush();
        }
        Runtime.getRuntime().halt(0);
    }

    /** In a thread of its own, since nothing may go on after an exit, not even a finally. */
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
