import static java.nio.charset.StandardCharsets.UTF_8;
import static java.util.concurrent.TimeUnit.MILLISECONDS;
import static java.util.concurrent.TimeUnit.SECONDS;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.retry.RetryOneTime;

/**
 * A Curator client that does what it is told: {@code java Peer.java CONNECT-STRING SESSION-TIMEOUT-MS}.
 *
 * <p>Once it is connected it says {@code ready}. Then each line that it reads is {@code NUMBER THING VERB ARGUMENTS}, separated by
 * single spaces, and is answered when it is done, not before: {@code NUMBER ok VALUES}, {@code NUMBER no}, or
 * {@code NUMBER error WHAT}. A thing is made by the verb {@code make KIND ARGUMENTS}. Each has a thread of its own: waiting holds up
 * nothing else, and a lock is released by the thread that holds it. The process ends when its input does.
 */
public final class Peer {
    /** A recipe at work. */
    interface Thing {
        /** True and false are answers without values; a list, a text and a number are values. */
        Object told(String verb, List<String> arguments) throws Exception;
    }

    private final CuratorFramework client;
    private final Map<String, ExecutorService> threads = new HashMap<>();

    /** Each entry is used by its thing's thread alone. */
    private final Map<String, Thing> things = new ConcurrentHashMap<>();

    private Peer(CuratorFramework client) {
        this.client = client;
    }

    public static void main(String[] arguments) throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(arguments[0])
                .sessionTimeoutMs(Integer.parseInt(arguments[1]))
                .retryPolicy(new RetryOneTime(100))
                .ensembleTracker(false)
                .build();
        client.start();
        if (!client.blockUntilConnected(30, SECONDS)) {
            throw new IllegalStateException("no connection");
        }
        System.out.println("ready");
        new Peer(client).listen();
        client.close();
        Runtime.getRuntime().halt(0);
    }

    private void listen() throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, UTF_8));
        for (String line; (line = input.readLine()) != null; ) {
            List<String> words = Arrays.asList(line.split(" ", -1));
            ExecutorService thread = threads.computeIfAbsent(words.get(1), name -> Executors.newSingleThreadExecutor());
            thread.execute(() -> System.out.println(words.get(0) + " " + answer(words)));
        }
    }

    private String answer(List<String> words) {
        try {
            String verb = words.get(2);
            List<String> arguments = words.subList(3, words.size());
            if (verb.equals("make")) {
                things.put(words.get(1), make(arguments.get(0), arguments.subList(1, arguments.size())));
                return "ok";
            }
            Object result = things.get(words.get(1)).told(verb, arguments);
            if (result instanceof Boolean done) {
                return done ? "ok" : "no";
            }
            List<?> values = result instanceof List<?> list ? list : List.of(result);
            return values.stream().map(value -> " " + value).reduce("ok", String::concat);
        } catch (Throwable error) {
            return ("error " + error).replace('\n', ' ');
        }
    }

    private Thing make(String kind, List<String> arguments) throws Exception {
        String path = arguments.get(0);
        return switch (kind) {
            case "mutex" -> new Mutex(path);
            default -> throw new IllegalArgumentException("no thing is called " + kind);
        };
    }

    private static IllegalArgumentException unknown(String verb) {
        return new IllegalArgumentException("it does not know how to " + verb);
    }

    private final class Mutex implements Thing {
        private final InterProcessMutex mutex;
        private final CountDownLatch revoked = new CountDownLatch(1);

        Mutex(String path) {
            mutex = new InterProcessMutex(client, path);
        }

        @Override
        public Object told(String verb, List<String> arguments) throws Exception {
            switch (verb) {
                case "acquire" -> mutex.acquire();
                case "try" -> {
                    return mutex.acquire(0, MILLISECONDS);
                }
                case "release" -> mutex.release();
                case "participants" -> {
                    return List.copyOf(mutex.getParticipantNodes());
                }
                case "revocable" -> mutex.makeRevocable(lock -> revoked.countDown());
                case "revoked" -> revoked.await();
                case "revoke" -> Revoker.attemptRevoke(client, arguments.get(0));
                default -> throw unknown(verb);
            }
            return true;
        }
    }
}
