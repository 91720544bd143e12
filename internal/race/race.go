// Package race reports to tests whether the race detector is on: with it they take several times as long, and need more
// memory.
package race

import "testing"

// Short reports whether a test takes its short form: with -short, and with the race detector. The Makefile names the
// test among LONG_TESTS, so that make test-all runs the long form without the detector.
func Short() bool { return Enabled || testing.Short() }

// SkipLong skips a test that has no short form, as [Short] says.
func SkipLong(t testing.TB, why string) {
	t.Helper()
	if Short() {
		t.Skip("SKIPPED with -short and with -race, make test-all runs it once without: " + why)
	}
}

// Skip skips a slow test with the race detector. The test is of code that runs in one goroutine, or whose goroutines
// other tests run with the detector. It has to run without the detector in make test: do not call Skip in a test that
// -short skips. Tests of packages that have no goroutine need no Skip: the Makefile names the package in SEQUENTIAL.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("SKIPPED with -race: it is slow; make test runs it, and other tests run its goroutines, if any, with -race")
	}
}
