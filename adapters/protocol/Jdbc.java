import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.SQLException;
import javax.sql.DataSource;
import org.springframework.dao.DataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;

/** JDBC connections from a pool, as in most programs. */
final class Jdbc {
    /** How long a request waits for a connection. The pool's default, 30 s, is longer than the waits of clients. */
    private static final long CONNECTION_MILLIS = 2_000;

    private Jdbc() {
    }

    /** Returns a pool of connections to the database of a setup. It keeps one idle connection. */
    static HikariDataSource connect(JsonNode setup) {
        JsonNode endpoints = setup.path("endpoints");
        boolean postgres = isPostgres(setup);
        HikariDataSource pool = new HikariDataSource();
        pool.setJdbcUrl(String.format("jdbc:%s://%s/%s?%s", postgres ? "postgresql" : "mariadb",
            endpoints.path("addrs").path(0).asText(), postgres ? "postgres" : "lockchaos", "sslmode=disable"));
        pool.setUsername(postgres ? "postgres" : "lockchaos");
        pool.setPassword(endpoints.path("password").asText(""));
        String source = endpoints.path("source").asText("");
        if (!source.isEmpty()) {
            pool.addDataSourceProperty("localSocketAddress", source);
        }
        pool.setMinimumIdle(1);
        pool.setMaximumPoolSize(4);
        pool.setConnectionTimeout(CONNECTION_MILLIS);
        return pool;
    }

    static boolean isPostgres(JsonNode setup) {
        return setup.path("endpoints").path("kind").asText().equals("postgres");
    }

    /** Changes the schema. If that fails because another client has done it, check, which needs the change, succeeds. */
    static void migrate(JdbcTemplate database, String change, String check) {
        try {
            database.execute(change);
        } catch (DataAccessException e) {
            database.execute(check);
        }
    }

    /**
     * Reports whether the pool has a connection. A client asks before it requests a lock, because an error of the
     * library does not show that nothing was sent.
     */
    static boolean connected(DataSource pool) {
        try (Connection c = pool.getConnection()) {
            return true;
        } catch (SQLException e) {
            return false;
        }
    }

    /** The reply to a request that was not sent. */
    static ObjectNode unconnected() {
        return Protocol.failed("no-reply", "no connection");
    }
}
