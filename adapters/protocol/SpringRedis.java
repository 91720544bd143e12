import com.fasterxml.jackson.databind.JsonNode;
import io.lettuce.core.resource.ClientResources;
import io.lettuce.core.resource.NettyCustomizer;
import io.netty.bootstrap.Bootstrap;
import java.net.InetSocketAddress;
import org.springframework.data.redis.connection.RedisConfiguration;
import org.springframework.data.redis.connection.RedisNode;
import org.springframework.data.redis.connection.RedisSentinelConfiguration;
import org.springframework.data.redis.connection.RedisStandaloneConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceClientConfiguration;
import org.springframework.data.redis.connection.lettuce.LettuceConnectionFactory;

/** Connections of Spring Data Redis over Lettuce, with the defaults of both but for the source address. */
final class SpringRedis {
    private SpringRedis() {
    }

    /** Returns started connections to the server of a setup, or to the master that its Sentinels name. */
    static LettuceConnectionFactory connect(JsonNode setup) {
        JsonNode endpoints = setup.path("endpoints");
        String source = endpoints.path("source").asText("");
        LettuceClientConfiguration client = LettuceClientConfiguration.builder().clientResources(ClientResources.builder()
            .nettyCustomizer(new NettyCustomizer() {
                @Override
                public void afterBootstrapInitialized(Bootstrap bootstrap) {
                    if (!source.isEmpty()) {
                        bootstrap.localAddress(new InetSocketAddress(source, 0));
                    }
                }
            }).build()).build();
        LettuceConnectionFactory connections = new LettuceConnectionFactory(servers(endpoints), client);
        connections.afterPropertiesSet();
        connections.start();
        return connections;
    }

    private static RedisConfiguration servers(JsonNode endpoints) {
        String password = endpoints.path("password").asText("");
        if (!endpoints.path("kind").asText().equals("sentinel")) {
            RedisNode node = RedisNode.fromString(endpoints.path("addrs").path(0).asText());
            RedisStandaloneConfiguration server = new RedisStandaloneConfiguration(node.getHost(), node.getPort());
            server.setPassword(password);
            return server;
        }
        RedisSentinelConfiguration servers = new RedisSentinelConfiguration().master(endpoints.path("master_name").asText());
        endpoints.path("sentinels").forEach(address -> servers.sentinel(RedisNode.fromString(address.asText())));
        servers.setPassword(password);
        servers.setSentinelPassword(password);
        return servers;
    }
}
