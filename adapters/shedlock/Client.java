import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;

/** A client of the protocol (docs/reference/protocol.md) for ShedLock over Spring Data Redis: Client KIND. */
public final class Client extends Protocol<SimpleLock> {
    private static final long RETRY_MILLIS = 50;
    private static final long DEFAULT_LEASE_MILLIS = 30_000;

    private LockProvider locks;

    public static void main(String[] args) throws Exception {
        serve(new Client(), args);
    }

    @Override
    ObjectNode open(JsonNode setup) throws Exception {
        boolean safeUpdate = kind.equals("lock-safe-update");
        locks = new RedisLockProvider.Builder(SpringRedis.connect(setup)).safeUpdate(safeUpdate).build();
        warmUp();
        return can(safeUpdate ? List.of("try", "scripts") : List.of("try"));
    }

    /** Loads the classes, which takes seconds on a busy machine. */
    private void warmUp() throws Exception {
        ObjectNode request = object().put("op", "try").put("owner", "warm-up").put("key", "warm-up-" + UUID.randomUUID());
        perform(request);
        perform(request.put("op", "release"));
    }

    @Override
    ObjectNode perform(JsonNode request) throws Exception {
        String op = request.path("op").asText();
        if (request.has("keys") || request.has("permits") || request.has("mode")) {
            return unknown(op);
        }
        String owner = owner(request);
        switch (op) {
            case "acquire", "try":
                return acquire(owner, request);
            case "release":
                SimpleLock hold = holds.remove(owner);
                if (hold == null) {
                    return failed("not-held", "nothing is held");
                }
                hold.unlock();
                return ok();
            default:
                return unknown(op);
        }
    }

    /** The library does not wait: it is tried until the time is over. */
    private ObjectNode acquire(String owner, JsonNode request) throws InterruptedException {
        long lease = (long) request.path("lease_ms").asDouble();
        Duration atMost = Duration.ofMillis(lease > 0 ? lease : DEFAULT_LEASE_MILLIS);
        long end = System.nanoTime() + wait(request) * 1_000_000;
        while (true) {
            long asked = System.nanoTime();
            Optional<SimpleLock> hold = locks.lock(
                new LockConfiguration(Instant.now(), request.path("key").asText(), atMost, Duration.ZERO));
            if (hold.isPresent()) {
                holds.put(owner, hold.get());
                long now = System.nanoTime();
                return ok().put("valid_ms", (asked + atMost.toNanos() - now) / 1e6).put("mono_ns", now);
            }
            if (end - System.nanoTime() < RETRY_MILLIS * 1_000_000) {
                return held();
            }
            Thread.sleep(RETRY_MILLIS);
        }
    }
}
