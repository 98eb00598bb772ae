import static java.util.concurrent.TimeUnit.SECONDS;

import java.io.IOException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.RetryOneTime;

/** An order, and the sessions that are opened for it. Closing the order closes the sessions. */
final class Order implements AutoCloseable {
    private static final int SESSION_TIMEOUT_MS = 30_000;

    private final String[] words;
    private final Map<String, Integer> settings = new HashMap<>();
    private final List<CuratorFramework> clients = new ArrayList<>();

    Order(String line) {
        words = line.split(" ");
        for (int word = 3; word < words.length; word++) {
            String[] setting = words[word].split("=");
            settings.put(setting[0], Integer.parseInt(setting[1]));
        }
    }

    String name() {
        return words[0];
    }

    String path() {
        return words[2];
    }

    /** Returns a setting, or zero if it is missing. */
    int number(String key) {
        return settings.getOrDefault(key, 0);
    }

    /** Opens a session, as a service would open it. */
    CuratorFramework client() throws Exception {
        CuratorFramework client = CuratorFrameworkFactory.builder()
                .connectString(words[1])
                .sessionTimeoutMs(SESSION_TIMEOUT_MS)
                .retryPolicy(new RetryOneTime(100))
                .ensembleTracker(false)
                .build();
        clients.add(client);
        client.start();
        if (!client.blockUntilConnected(30, SECONDS)) {
            throw new IOException("not connected");
        }
        return client;
    }

    /** Opens several sessions. */
    List<CuratorFramework> clients(int count) throws Exception {
        List<CuratorFramework> several = new ArrayList<>();
        for (int client = 0; client < count; client++) {
            several.add(client());
        }
        return several;
    }

    @Override
    public void close() {
        clients.forEach(CuratorFramework::close);
    }
}
