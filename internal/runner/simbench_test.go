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

// BenchmarkSim is 30 virtual seconds of five clients, and scenarios as they are, from the scenario to the verdict, with
// the processors and the garbage collection of a worker of chaos explore.
func BenchmarkSim(b *testing.B) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	thirty := []string{"duration=30s", "workload.clients=5"}
	for _, c := range []struct {
		name, scenario string
		sets           []string
	}{
		{"failover", "failover", thirty},
		{"gc-pause", "gc-pause", thirty},
		{"no-faults", "testdata/no-faults.yaml", thirty},
		{"redlock-always", "redlock-always", thirty},
		{"redlock-two-masters-down", "redlock-two-masters-down", thirty},
		{"swarm-single", "swarm-single", thirty},
		{"swarm", "swarm", thirty},
		{"cluster-failover", "cluster-failover", thirty},
		{"zk-failover", "zk-failover", thirty},
		{"failover-as-it-is", "failover", nil},
		{"gc-pause-as-it-is", "gc-pause", nil},
		{"swarm-single-as-it-is", "swarm-single", nil},
		{"redlock-always-as-it-is", "redlock-always", nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := scenarios.Load(c.scenario, scenarios.Sets(c.sets)...)
			if err != nil {
				b.Fatal(err)
			}
			commands, used := int64(0), cpu(b)
			for i := 0; b.Loop(); i++ {
				on := newSim()
				if _, err := Run(context.Background(), Options{
					Scenario: s, Seed: uint64(i), Backend: on, InMemory: true, Version: "bench",
				}); err != nil {
					b.Fatal(err)
				}
				commands += on.Commands()
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
