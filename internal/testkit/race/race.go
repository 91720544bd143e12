// Package race reports whether the race detector is on. With it, tests take several times as long and need more memory.
package race

import "testing"

// Short reports whether a test should run in its short form: with -short or with the race detector. List such a test
// in LONG_TESTS of the Makefile, so that make test-all runs its long form without the detector.
func Short() bool { return Enabled || testing.Short() }

// SkipLong skips a test that has no short form, if [Short] is true.
func SkipLong(t testing.TB, why string) {
	t.Helper()
	if Short() {
		t.Skip("SKIPPED with -short or -race; make test-all runs it without both: " + why)
	}
}

// Skip skips a slow test if the race detector is on. Use it only for code that runs in one goroutine, or whose
// concurrency other tests check with the detector. Do not call Skip in a test that -short skips: make test must run
// it without the detector. Packages without goroutines need no Skip: list them in SEQUENTIAL of the Makefile.
func Skip(t testing.TB) {
	t.Helper()
	if Enabled {
		t.Skip("SKIPPED with -race: it is slow; make test runs it, and other tests run its goroutines, if any, with -race")
	}
}
