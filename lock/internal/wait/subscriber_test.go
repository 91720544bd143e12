package wait

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/lockchaos/lockchaos/internal/testkit/locktest"
)

// A failed write on an existing connection must not make go-redis dial again, under its mutex. With a context that has
// not ended, it does.
func TestNeverDial(t *testing.T) {
	t.Parallel()
	s := locktest.StartServer(t)
	for name, dials := range map[string]int{"as it is": 2, "neverDial": 1} {
		var made []net.Conn
		rdb := redis.NewClient(&redis.Options{
			Addr: s.Addr,
			Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
				conn, err := new(net.Dialer).DialContext(ctx, network, addr)
				if err == nil {
					made = append(made, conn)
				}
				return conn, err
			},
		})
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		pubsub := rdb.Subscribe(ctx, "channel")
		if err := pubsub.Ping(neverDial(ctx)); err != nil || len(made) != 1 {
			t.Errorf("%s: a ping on a good connection: %v, %d connections", name, err, len(made))
		}
		_ = made[0].Close()
		used := ctx
		if dials == 1 {
			used = neverDial(ctx)
		}
		if err := pubsub.Ping(used); err == nil || len(made) != dials {
			t.Errorf("%s: a ping on a broken connection: %v, %d connections, want %d", name, err, len(made), dials)
		}
		cancel()
		_, _ = pubsub.Close(), rdb.Close()
	}
}
