//go:build unix

package runner

import (
	"context"
	"runtime"
	"runtime/debug"
	"syscall"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/scenarios"
)

// BenchmarkSim is 30 virtual seconds of five clients, from the scenario to the verdict, with the processors and the
// garbage collection of a worker of chaos explore.
func BenchmarkSim(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	for _, c := range []struct{ name, scenario string }{
		{"failover", "failover"},
		{"gc-pause", "gc-pause"},
		{"no-faults", "testdata/no-faults.yaml"},
		{"redlock-always", "redlock-always"},
		{"redlock-two-masters-down", "redlock-two-masters-down"},
		{"swarm-single", "swarm-single"},
		{"swarm", "swarm"},
		{"cluster-failover", "cluster-failover"},
		{"zk-failover", "zk-failover"},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := scenarios.Load(c.scenario, scenarios.Sets([]string{"duration=30s", "workload.clients=5"})...)
			if err != nil {
				b.Fatal(err)
			}
			commands, used := int64(0), cpu(b)
			for i := 0; b.Loop(); i++ {
				backend := NewSim(nil)
				if _, err := Run(context.Background(), Options{
					Scenario: s, Seed: uint64(i), Backend: backend, InMemory: true, Version: "bench",
				}); err != nil {
					b.Fatal(err)
				}
				commands += backend.Commands()
				runtime.GC()
				runtime.GC()
			}
			b.ReportMetric(float64(commands)/float64(b.N), "commands/seed")
			spent := (cpu(b) - used).Seconds()
			b.ReportMetric(float64(commands)/spent, "commands/cpu-s")
			b.ReportMetric(float64(b.N)/spent, "seeds/cpu-s")
		})
	}
}

// cpu is the CPU time of this process: on a busy machine, elapsed time means little.
func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Skipf("no processor time here: %v", err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
