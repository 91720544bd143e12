package runner

import (
	"context"
	"runtime"
	"testing"

	"github.com/lockchaos/lockchaos/scenarios"
)

// BenchmarkSim is 30 virtual seconds of five busy clients, faults included, from
// the scenario to the verdict.
func BenchmarkSim(b *testing.B) {
	for _, name := range []string{"gc-pause", "failover", "redlock-two-masters-down"} {
		b.Run(name, func(b *testing.B) {
			s, err := scenarios.Load(name, []string{"duration=30s", "workload.hold=50ms"})
			if err != nil {
				b.Fatal(err)
			}
			commands := int64(0)
			for i := 0; b.Loop(); i++ {
				backend := NewSim()
				if _, err := Run(context.Background(), Options{
					Scenario: s, Seed: uint64(i), Backend: backend, Out: b.TempDir(), Version: "bench",
				}); err != nil {
					b.Fatal(err)
				}
				commands += backend.Commands()
				runtime.GC()
				runtime.GC()
			}
			b.ReportMetric(float64(commands)/b.Elapsed().Seconds(), "commands/s")
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "seeds/s")
		})
	}
}
