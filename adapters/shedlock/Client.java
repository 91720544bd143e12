import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Clock;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Optional;
import java.util.SplittableRandom;
import java.util.UUID;
import javax.sql.DataSource;
import net.javacrumbs.shedlock.core.ClockProvider;
import net.javacrumbs.shedlock.core.LockConfiguration;
import net.javacrumbs.shedlock.core.LockProvider;
import net.javacrumbs.shedlock.core.SimpleLock;
import net.javacrumbs.shedlock.provider.jdbctemplate.JdbcTemplateLockProvider;
import net.javacrumbs.shedlock.provider.redis.spring.RedisLockProvider;
import org.springframework.jdbc.core.JdbcTemplate;

/** A client of the protocol (docs/reference/protocol.md) for ShedLock over Spring Data Redis or Spring JDBC: Client KIND. */
public final class Client extends Protocol<SimpleLock> {
    private static final long RETRY_MILLIS = 50;
    private static final long DEFAULT_LEASE_MILLIS = 30_000;
    private static final long CLOCK_NANOS = 1_000_000; // the library truncates times to milliseconds

    private LockProvider locks;
    private DataSource pool; // of JDBC

    public static void main(String[] args) throws Exception {
        serve(new Client(), args);
    }

    @Override
    ObjectNode open(JsonNode setup) throws Exception {
        boolean safeUpdate = kind.equals("lock-safe-update");
        List<String> can = safeUpdate ? List.of("try", "scripts") : List.of("try");
        if (kind.startsWith("jdbc")) {
            setClock(setup);
            locks = database(setup);
            can = List.of("try", "renew", "keeps-grants");
        } else {
            locks = new RedisLockProvider.Builder(SpringRedis.connect(setup)).safeUpdate(safeUpdate).build();
        }
        warmUp();
        return can(can);
    }

    /** The table of the locks is the harness's, so that it sees who holds them; the library allows other names of columns. */
    private LockProvider database(JsonNode setup) {
        pool = Jdbc.connect(setup);
        JdbcTemplate database = new JdbcTemplate(pool);
        Jdbc.migrate(database, "ALTER TABLE locks ADD COLUMN locked_at timestamp(3) NULL",
            "SELECT locked_at FROM locks WHERE name IS NULL");
        JdbcTemplateLockProvider.Configuration.Builder options = JdbcTemplateLockProvider.Configuration.builder()
            .withJdbcTemplate(database).withTableName("locks")
            .withColumnNames(new JdbcTemplateLockProvider.ColumnNames("name", "expires", "locked_at", "owner"));
        if (!kind.equals("jdbc-one-host")) { // each client is a host of its own
            options.withLockedByValue(setup.path("endpoints").path("source").asText() + " " + setup.path("seed").asText());
        }
        if (!kind.equals("jdbc-client-clock")) {
            options.usingDbTime();
        }
        return new JdbcTemplateLockProvider(options.build());
    }

    /** Sets the library's clock as option clock_skew asks: off by at most that much, drawn from the seed. */
    private static void setClock(JsonNode setup) {
        String text = setup.path("options").path("clock_skew").asText("");
        if (!text.isEmpty()) {
            double skew = text.endsWith("ms") ? Double.parseDouble(text.substring(0, text.length() - 2))
                : Duration.parse("PT" + text.toUpperCase()).toMillis();
            double part = 2 * new SplittableRandom(setup.path("seed").asLong()).nextDouble() - 1;
            ClockProvider.setClock(Clock.offset(Clock.systemUTC(), Duration.ofMillis((long) (part * skew))));
        }
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
            case "renew":
                return renew(owner, request);
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

    private static Duration atMost(JsonNode request) {
        long lease = (long) request.path("lease_ms").asDouble();
        return Duration.ofMillis(lease > 0 ? lease : DEFAULT_LEASE_MILLIS);
    }

    /** The reply to a request that was sent after the time asked: the lock is held for atMost from then on. */
    private static ObjectNode valid(long asked, Duration atMost) {
        long now = System.nanoTime();
        return ok().put("valid_ms", (asked + atMost.toNanos() - CLOCK_NANOS - now) / 1e6).put("mono_ns", now);
    }

    /** The library does not wait, so this client tries until the time is over. */
    private ObjectNode acquire(String owner, JsonNode request) throws InterruptedException {
        long end = System.nanoTime() + wait(request) * 1_000_000;
        while (true) {
            boolean connected = pool == null || Jdbc.connected(pool);
            long asked = System.nanoTime();
            Optional<SimpleLock> hold = connected ? tryLock(request) : Optional.empty();
            if (hold.isPresent()) {
                holds.put(owner, hold.get());
                return valid(asked, atMost(request));
            }
            if (end - System.nanoTime() < RETRY_MILLIS * 1_000_000) {
                return connected ? held() : Jdbc.unconnected();
            }
            Thread.sleep(RETRY_MILLIS);
        }
    }

    private Optional<SimpleLock> tryLock(JsonNode request) {
        Instant now = ClockProvider.now();
        return locks.lock(new LockConfiguration(now, request.path("key").asText(), atMost(request), Duration.ZERO));
    }

    private ObjectNode renew(String owner, JsonNode request) {
        SimpleLock hold = holds.get(owner);
        if (hold == null) {
            return failed("not-held", "nothing is held");
        }
        long asked = System.nanoTime();
        Optional<SimpleLock> extended = hold.extend(atMost(request), Duration.ZERO);
        if (extended.isEmpty()) { // the library has no unlock for it any more
            holds.remove(owner);
            return failed("not-held", "extend() returned nothing");
        }
        holds.put(owner, extended.get());
        return valid(asked, atMost(request));
    }
}
