// Package race reports to tests whether the race detector is on: with it they take several times as long, and need more
// memory.
package race

import "testing"

// Skip skips a slow test with the race detector. The test is of code that runs in one goroutine, or whose goroutines
// other tests run with the detector. It has to run without the detector in make test: do not call Skip in a test that
// -short skips.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("SKIPPED with -race: it is slow; make test runs it, and other tests run its goroutines, if any, with -race")
	}
}
