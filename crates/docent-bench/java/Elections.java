import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.LinkedBlockingQueue;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderLatchListener;

/** Candidates whose leader resigns. Measures the time from the call until another candidate leads. */
final class Elections {
    /** Time in which all candidates find their places before the leader resigns. */
    private static final int PAUSE_MS = 10;

    private record Term(int number, long since) {}

    private Elections() {}

    static String resign(Order order) throws Exception {
        List<CuratorFramework> clients = order.clients(order.number("candidates"));
        LinkedBlockingQueue<Term> begun = new LinkedBlockingQueue<>();
        LeaderLatch[] latches = new LeaderLatch[clients.size()];
        for (int number = 0; number < latches.length; number++) {
            latches[number] = campaign(clients.get(number), order.path(), number, begun);
        }
        Term leader = begun.take();

        List<Long> times = new ArrayList<>();
        Measured measured = Measured.start();
        while (times.size() < order.number("samples")) {
            Thread.sleep(PAUSE_MS);
            long called = System.nanoTime();
            latches[leader.number()].close();
            Term next = begun.take();
            times.add(next.since() - called);
            latches[leader.number()] =
                    campaign(clients.get(leader.number()), order.path(), leader.number(), begun);
            leader = next;
        }
        String answer = measured.stop(times.size());
        for (LeaderLatch latch : latches) {
            latch.close();
        }
        return answer + Measured.times("", times);
    }

    private static LeaderLatch campaign(
            CuratorFramework client, String path, int number, LinkedBlockingQueue<Term> begun) throws Exception {
        LeaderLatch latch = new LeaderLatch(client, path, "candidate-" + number);
        latch.addListener(new LeaderLatchListener() {
            @Override
            public void isLeader() {
                begun.add(new Term(number, System.nanoTime()));
            }

            @Override
            public void notLeader() {}
        });
        latch.start();
        return latch;
    }
}
