import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;
import java.util.Arrays;
import java.util.List;

/** Measured part of an order. Reports its beginning and end to the bench. */
final class Measured {
    private static final OperatingSystemMXBean PROCESS =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    /** Time for the bench to read its counts before the end of the order adds to them. */
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

    /** Returns the figures of this number of operations. Waits until the bench has recorded their requests. */
    String stop(long operations) throws InterruptedException {
        double seconds = (System.nanoTime() - since) / 1e9;
        double micros = (PROCESS.getProcessCpuTime() - cpu) / 1e3;
        System.out.println("stop");
        Thread.sleep(PAUSE_MS);
        return "ok ops=" + operations + " seconds=" + seconds + " cpu_micros=" + micros;
    }

    /** Returns the median and the 95th percentile of times in nanoseconds, as additional figures. */
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
