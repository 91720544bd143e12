package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"time"
)

// costOf is the cost of one acquire and release in CPU time, which other load on the machine
// disturbs less than elapsed time.
type costOf struct {
	client, server time.Duration // user and system time
	allocs, bytes  uint64        // of the client
}

// costs measures one goroutine that acquires and releases an uncontended lock.
func costs(ctx context.Context, srv *server, c config) error {
	all, err := open(srv.addr, rawScripts, rawCommands, redislockEvery("redislock", 100*time.Millisecond), ours, oursFair)
	if err != nil {
		return err
	}
	defer closeAll(all)
	var rows []string
	got := make([][]costOf, len(all))
	for range c.rounds {
		for i, s := range all {
			one, err := costOfPair(ctx, srv, s, 5000)
			if err != nil {
				return err
			}
			got[i] = append(got[i], one)
		}
	}
	for i, s := range all {
		rows = append(rows, fmt.Sprintf("%s\t%s\t%s\t%d\t%d", s.name,
			tenths(got[i], func(c costOf) time.Duration { return c.client }),
			tenths(got[i], func(c costOf) time.Duration { return c.server }),
			got[i][0].allocs, got[i][0].bytes))
	}
	table("CPU time of one acquire and release, 1 goroutine",
		"lock\tclient\tserver\tallocations\tbytes", rows)
	return nil
}

func costOfPair(ctx context.Context, srv *server, s subject, n int) (costOf, error) {
	pair := func() error {
		release, err := s.acquire(ctx, "cost")
		if err != nil {
			return err
		}
		return release()
	}
	for range 500 {
		if err := pair(); err != nil {
			return costOf{}, err
		}
	}
	var a, b runtime.MemStats
	runtime.ReadMemStats(&a)
	cpu, server := ownCPU(), srv.cpu(ctx)
	for range n {
		if err := pair(); err != nil {
			return costOf{}, err
		}
	}
	d := time.Duration(n)
	out := costOf{client: (ownCPU() - cpu) / d, server: (srv.cpu(ctx) - server) / d}
	runtime.ReadMemStats(&b)
	out.allocs, out.bytes = (b.Mallocs-a.Mallocs)/uint64(n), (b.TotalAlloc-a.TotalAlloc)/uint64(n)
	return out, nil
}

// tenths is a median to a tenth of a microsecond.
func tenths(rounds []costOf, of func(costOf) time.Duration) string {
	var all []time.Duration
	for _, c := range rounds {
		all = append(all, of(c))
	}
	slices.Sort(all)
	return all[len(all)/2].Round(100 * time.Nanosecond).String()
}

// ownCPU is the CPU time that this process has used.
func ownCPU() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// cpu is the CPU time that the server has used.
func (s *server) cpu(ctx context.Context) time.Duration {
	info := s.rdb.InfoMap(ctx, "cpu")
	sys, _ := strconv.ParseFloat(info.Item("CPU", "used_cpu_sys"), 64)
	user, _ := strconv.ParseFloat(info.Item("CPU", "used_cpu_user"), 64)
	return time.Duration((sys + user) * float64(time.Second))
}
