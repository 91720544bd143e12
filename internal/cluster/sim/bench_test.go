//go:build unix

package sim_test

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"golang.org/x/sys/unix"

	"github.com/lockchaos/lockchaos/internal/cluster/sim"
	"github.com/lockchaos/lockchaos/internal/cluster/sim/bubble"
)

// BenchmarkLockTraffic is clients that take, check and give back locks of their own as fast as the network lets them:
// the capacity of a core.
func BenchmarkLockTraffic(b *testing.B) {
	for name, cfg := range map[string]sim.Config{"single": single(), "sentinel": sentinels()} {
		b.Run(name, func(b *testing.B) {
			defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
			redis.SetLogger(quiet{})
			runtime.GC()
			runtime.GC()
			commands, virtual := int64(0), time.Duration(0)
			used := cpu(b)
			err := bubble.Run(func() { commands, virtual = traffic(b, cfg) })
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(float64(commands)/(cpu(b)-used).Seconds(), "commands/cpu-s")
			b.ReportMetric(float64(commands)/b.Elapsed().Seconds(), "commands/s")
			b.ReportMetric(virtual.Seconds()/b.Elapsed().Seconds(), "virtual-s/s")
		})
	}
}

// cpu is the time that the process has had of the processors: on a machine that
// has other work to do, the time that has passed says little.
func cpu(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Skipf("no processor time here: %v", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

func traffic(b *testing.B, cfg sim.Config) (commands int64, virtual time.Duration) {
	ctx := context.Background()
	c, err := sim.Start(ctx, cfg)
	if err != nil {
		b.Error(err)
		return 0, 0
	}
	defer func() { _ = c.Close(ctx) }()
	done := make(chan struct{})
	before, began := c.Commands(), c.Now()
	each := b.N/cfg.Actors + 1
	for i := range cfg.Actors {
		go func() {
			defer func() { done <- struct{}{} }()
			a := c.Client(i)
			a.Turn()
			rdb := redis.NewClient(&redis.Options{
				Addr: c.Endpoints(i).Addrs[0], Dialer: a.Dial,
				MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			defer func() { _ = rdb.Close() }()
			key := a.Name()
			for range each {
				rdb.SetNX(ctx, key, "owner", time.Second)
				rdb.Get(ctx, key)
				rdb.Del(ctx, key)
			}
		}()
	}
	for range cfg.Actors {
		<-done
	}
	return c.Commands() - before, c.Now() - began
}
