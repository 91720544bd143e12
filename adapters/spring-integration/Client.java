import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.UUID;
import javax.sql.DataSource;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.integration.jdbc.lock.DefaultLockRepository;
import org.springframework.integration.jdbc.lock.JdbcLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;
import org.springframework.integration.support.locks.DistributedLock;
import org.springframework.integration.support.locks.RenewableLockRegistry;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.support.JdbcTransactionManager;

/**
 * A client of the protocol (docs/reference/protocol.md) for Spring Integration's RedisLockRegistry and JdbcLockRegistry: Client KIND.
 * It counts how often an owner has entered a lock.
 */
public final class Client extends Protocol<Integer> {
    private static final String REGISTRY = "chaos";
    private static final Duration REDIS_LEASE = Duration.ofSeconds(60); // of the library
    /** The table of the library's schema-postgresql.sql. */
    private static final String TABLE = "CREATE TABLE INT_LOCK (LOCK_KEY CHAR(36) NOT NULL, REGION VARCHAR(100) NOT NULL, "
        + "CLIENT_ID CHAR(36), CREATED_DATE TIMESTAMP NOT NULL, EXPIRED_AFTER TIMESTAMP NOT NULL, "
        + "constraint INT_LOCK_PK primary key (LOCK_KEY, REGION))";

    private RenewableLockRegistry<DistributedLock> locks;
    private Duration defaultLease;
    private DataSource pool; // of JDBC

    public static void main(String[] args) throws Exception {
        serve(new Client(), args);
    }

    @Override
    ObjectNode open(JsonNode setup) throws Exception {
        if (kind.equals("jdbc")) {
            locks = database(setup);
            defaultLease = JdbcLockRegistry.DEFAULT_TTL;
            warmUp(key -> { });
            return can(List.of("reentrant", "try", "renew", "keeps-grants"));
        }
        LettuceConnectionFactory connections = SpringRedis.connect(setup);
        RedisLockRegistry redis = new RedisLockRegistry(connections, REGISTRY);
        redis.setRedisLockType(kind.equals("pub-sub") ? RedisLockType.PUB_SUB_LOCK : RedisLockType.SPIN_LOCK);
        locks = redis;
        defaultLease = REDIS_LEASE;
        StringRedisTemplate commands = new StringRedisTemplate(connections);
        warmUp(key -> commands.opsForValue().set(REGISTRY + ":" + key, "held", Duration.ofMillis(50)));
        return can(kind.equals("pub-sub") ? List.of("reentrant", "try", "renew", "wakes", "scripts")
            : List.of("reentrant", "try", "renew", "scripts"));
    }

    /** The lock registry over the library's repository, as an application context would start it. */
    private JdbcLockRegistry database(JsonNode setup) {
        pool = Jdbc.connect(setup);
        Jdbc.migrate(new JdbcTemplate(pool), TABLE, "SELECT LOCK_KEY FROM INT_LOCK WHERE REGION = ''");
        DefaultLockRepository repository = new DefaultLockRepository(pool);
        repository.setTransactionManager(new JdbcTransactionManager(pool));
        repository.afterPropertiesSet();
        repository.afterSingletonsInstantiated();
        repository.start();
        return new JdbcLockRegistry(repository);
    }

    private interface Prepare {
        void hold(String key);
    }

    /**
     * Acquires, renews and releases a lock on a key of its own to load the classes: that takes seconds on a busy
     * machine, and a cold first acquire would look like a lost wake-up. In Redis the key is set beforehand, so that the
     * acquire waits once, which starts the subscription of pub-sub.
     */
    private void warmUp(Prepare prepare) throws Exception {
        String key = "warm-up-" + UUID.randomUUID();
        ObjectNode request = object().put("op", "acquire").put("owner", "warm-up").put("key", key)
            .put("lease_ms", defaultLease.toMillis()).put("wait_ms", 200);
        prepare.hold(key);
        while (!perform(request).path("type").asText().equals("ok")) { // until the key has expired
            Thread.onSpinWait();
        }
        perform(request.put("op", "renew"));
        perform(request.put("op", "release"));
    }

    @Override
    ObjectNode perform(JsonNode request) throws Exception {
        String op = request.path("op").asText();
        if (request.has("keys") || request.has("permits") || request.has("mode")) {
            return unknown(op);
        }
        String owner = owner(request);
        String key = request.path("key").asText();
        long lease = (long) request.path("lease_ms").asDouble();
        Duration timeToLive = lease > 0 ? Duration.ofMillis(lease) : defaultLease;
        switch (op) {
            case "acquire", "try":
                if (pool != null && !Jdbc.connected(pool)) {
                    return Jdbc.unconnected();
                }
                if (!locks.obtain(key).tryLock(Duration.ofMillis(wait(request)), timeToLive)) {
                    return held();
                }
                holds.merge(owner, 1, Integer::sum);
                return ok();
            case "renew":
                return renew(key, owner, timeToLive);
            case "release":
                return release(key, owner);
            default:
                return unknown(op);
        }
    }

    private ObjectNode renew(String key, String owner, Duration timeToLive) {
        if (!holds.containsKey(owner)) { // the library checks the registry's client id, not the thread
            return failed("not-held", "nothing is held");
        }
        try {
            locks.renewLock(key, timeToLive);
            return ok();
        } catch (IllegalStateException e) { // the script or statement found another value, or none
            return failed("not-held", String.valueOf(e));
        }
    }

    private ObjectNode release(String key, String owner) {
        holds.computeIfPresent(owner, (name, held) -> held > 1 ? held - 1 : null);
        try {
            locks.obtain(key).unlock();
            return ok();
        } catch (ConcurrentModificationException | IllegalStateException e) { // expired; not of this thread
            return failed("not-held", String.valueOf(e));
        }
    }
}
