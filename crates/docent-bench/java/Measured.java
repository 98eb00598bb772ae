import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;

/** Part of an order that is measured. Tells the bench of its begin and its end. */
final class Measured {
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** Time that the bench has to look at its counts before the end of the order adds to them. */
    private static final int PAUSE_MS = 20;

    private final long since;
    private final long cpu;

    private Measured() {
        System.out.println("start");
        since = System.nanoTime();
        cpu = PROCESS.getProcessCpuTime();
    }

    static Measured start() {
        return new Measured();
    }

    /** Figures of so many operations. Waits until the bench has noted what they sent. */
    String stop(long operations) throws InterruptedException {
        double seconds = (System.nanoTime() - since) / 1e9;
        double micros = (PROCESS.getProcessCpuTime() - cpu) / 1e3;
        System.out.println("stop");
        Thread.sleep(PAUSE_MS);
        return "ok ops=" + operations + " seconds=" + seconds + " cpu_micros=" + micros;
    }

    /** The median and the 95th percentile of times in nanoseconds, as more figures. */
    static String times(String prefix, List<Long> times) {
        long[] sorted = times.stream().mapToLong(time -> time).sorted().toArray();
        return " " + prefix + "p50=" + quantile(sorted, 0.5) + " " + prefix + "p95=" + quantile(sorted, 0.95);
    }

    private static double quantile(long[] sorted, double share) {
        if (sorted.length == 0) {
            throw new IllegalArgumentException("no times in " + Arrays.toString(sorted));
        }
        return sorted[(int) Math.round((sorted.length - 1) * share)] / 1e3;
    }
}
