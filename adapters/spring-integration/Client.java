import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.time.Duration;
import java.util.ConcurrentModificationException;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;
import org.springframework.data.redis.core.StringRedisTemplate;
import org.springframework.integration.redis.util.RedisLockRegistry;
import org.springframework.integration.redis.util.RedisLockRegistry.RedisLockType;

/**
 * A client of the protocol (docs/reference/protocol.md) for Spring Integration's RedisLockRegistry: Client KIND. It counts how often an
 * owner has entered a lock.
 */
public final class Client extends Protocol<Integer> {
    private static final Map<String, List<String>> CAN = Map.of(
        "spin", List.of("reentrant", "try", "renew", "scripts"),
        "pub-sub", List.of("reentrant", "try", "renew", "wakes", "scripts"));
    private static final String REGISTRY = "chaos";
    private static final Duration DEFAULT_LEASE = Duration.ofSeconds(60); // of the library

    private RedisLockRegistry locks;

    public static void main(String[] args) throws Exception {
        serve(new Client(), args);
    }

    @Override
    ObjectNode open(JsonNode setup) throws Exception {
        LettuceConnectionFactory connections = SpringRedis.connect(setup);
        locks = new RedisLockRegistry(connections, REGISTRY);
        locks.setRedisLockType(kind.equals("pub-sub") ? RedisLockType.PUB_SUB_LOCK : RedisLockType.SPIN_LOCK);
        warmUp(new StringRedisTemplate(connections));
        return can(CAN.get(kind));
    }

    /**
     * Acquires, renews and releases a lock on a key of its own to load the classes: that takes seconds on a busy
     * machine, and a cold first acquire would look like a lost wake-up. The key is set beforehand, so that the acquire
     * waits once, which starts the subscription of pub-sub.
     */
    private void warmUp(StringRedisTemplate redis) throws Exception {
        String key = "warm-up-" + UUID.randomUUID();
        redis.opsForValue().set(REGISTRY + ":" + key, "held", Duration.ofMillis(50));
        ObjectNode request = object().put("op", "acquire").put("owner", "warm-up").put("key", key)
            .put("lease_ms", DEFAULT_LEASE.toMillis()).put("wait_ms", 200);
        while (!perform(request).path("type").asText().equals("ok")) {
            redis.delete(REGISTRY + ":" + key);
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
        Duration timeToLive = lease > 0 ? Duration.ofMillis(lease) : DEFAULT_LEASE;
        switch (op) {
            case "acquire", "try":
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
        } catch (IllegalStateException e) { // the script found another value, or none
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
