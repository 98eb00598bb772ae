import static java.nio.charset.StandardCharsets.UTF_8;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.cache.CuratorCache;
import org.apache.curator.framework.recipes.cache.CuratorCacheListener;

/** A node that one session sets and others follow, each with its own session and cache. */
final class Configurations {
    private record Seen(int value, long at) {}

    private Configurations() {}

    /** Measures, for each follower, the time from the return of the write, and as {@code call_} from the call. */
    static String publish(Order order) throws Exception {
        CuratorFramework publisher = order.client();
        publisher.create().creatingParentsIfNeeded().forPath(order.path(), bytes(0));
        LinkedBlockingQueue<Seen> heard = new LinkedBlockingQueue<>();
        List<CuratorCache> caches = new ArrayList<>();
        for (CuratorFramework client : order.clients(order.number("subscribers"))) {
            caches.add(follow(client, order.path(), heard));
        }
        for (int left = caches.size(); left > 0; left--) {
            heard.take();
        }
        List<Long> sinceReturn = new ArrayList<>();
        List<Long> sinceCall = new ArrayList<>();
        Measured measured = Measured.start();
        for (int value = 1; value <= order.number("samples"); value++) {
            long called = System.nanoTime();
            publisher.setData().forPath(order.path(), bytes(value));
            long returned = System.nanoTime();
            for (int left = caches.size(); left > 0; ) {
                Seen seen = heard.take();
                if (seen.value() == value) {
                    sinceReturn.add(Math.max(0, seen.at() - returned));
                    sinceCall.add(seen.at() - called);
                    left--;
                }
            }
        }
        String answer = measured.stop(order.number("samples"));
        caches.forEach(CuratorCache::close);
        return answer + Measured.times("", sinceReturn) + Measured.times("call_", sinceCall);
    }

    private static CuratorCache follow(CuratorFramework client, String path, LinkedBlockingQueue<Seen> heard) {
        CuratorCache cache = CuratorCache.build(client, path, CuratorCache.Options.SINGLE_NODE_CACHE);
        cache.listenable()
                .addListener(CuratorCacheListener.builder()
                        .forCreatesAndChanges((before, node) -> heard.add(
                                new Seen(Integer.parseInt(new String(node.getData(), UTF_8)), System.nanoTime())))
                        .build());
        cache.start();
        return cache;
    }

    private static byte[] bytes(int value) {
        return Integer.toString(value).getBytes(UTF_8);
    }
}
