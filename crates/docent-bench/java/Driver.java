import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Curator's recipes under load: {@code java Driver}.
 *
 * <p>Prints {@code ready}, and then carries out orders, one at a time. Each input line is an order,
 * {@code NAME CONNECT-STRING PATH KEY=NUMBER …}. The driver prints {@code start} and {@code stop} around the measured part,
 * and finally {@code ok KEY=NUMBER …} or {@code error WORDS}. The process exits when its input ends, even in the middle of
 * an order.
 */
public final class Driver {
    private Driver() {}

    public static void main(String[] arguments) throws Exception {
        LinkedBlockingQueue<String> lines = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> read(lines));
        reader.setDaemon(true);
        reader.start();
        System.out.println("ready");
        while (true) {
            System.out.println(answer(lines.take()));
        }
    }

    private static void read(LinkedBlockingQueue<String> lines) {
        try (BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8))) {
            for (String line; (line = input.readLine()) != null; ) {
                lines.add(line);
            }
        } catch (IOException error) {
            System.err.println(error);
        }
        Runtime.getRuntime().halt(0);
    }

    private static String answer(String line) {
        try (Order order = new Order(line)) {
            return switch (order.name()) {
                case "mutex" -> Locks.mutex(order);
                case "read-write" -> Locks.readWrite(order);
                case "election" -> Elections.resign(order);
                case "queue" -> Queues.queue(order);
                case "simple-queue" -> Queues.simple(order);
                case "view" -> Services.view(order);
                case "change" -> Services.change(order);
                case "join" -> Services.join(order);
                case "publish" -> Configurations.publish(order);
                default -> "error " + order.name() + " is an unknown workload";
            };
        } catch (Throwable error) {
            return ("error " + error).replace('\n', ' ');
        }
    }
}
