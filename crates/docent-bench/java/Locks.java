import java.util.List;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;

/** Locks under contention, each contender with its own session and thread. */
final class Locks {
    /** One in this many turns at the read/write lock is a write. */
    private static final int TURNS_PER_WRITE = 10;

    private Locks() {}

    static String mutex(Order order) throws Exception {
        List<CuratorFramework> clients = order.clients(order.number("clients"));
        Crowd crowd = new Crowd();
        for (CuratorFramework client : clients) {
            InterProcessMutex mutex = new InterProcessMutex(client, order.path());
            crowd.each(() -> {
                mutex.acquire();
                crowd.add(1);
                mutex.release();
            });
        }
        return crowd.measure(order);
    }

    static String readWrite(Order order) throws Exception {
        List<CuratorFramework> clients = order.clients(order.number("clients"));
        Crowd crowd = new Crowd();
        for (int number = 0; number < clients.size(); number++) {
            InterProcessReadWriteLock lock = new InterProcessReadWriteLock(clients.get(number), order.path());
            int[] turn = {number};
            crowd.each(() -> {
                turn[0]++;
                InterProcessMutex half = turn[0] % TURNS_PER_WRITE == 0 ? lock.writeLock() : lock.readLock();
                half.acquire();
                half.release();
                crowd.add(1);
            });
        }
        return crowd.measure(order);
    }
}
