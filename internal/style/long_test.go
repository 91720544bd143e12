package style

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestLongTestsRun: tests that internal/testkit/race makes short or skips with the race detector, test-all runs without
// it.
func TestLongTestsRun(t *testing.T) {
	var names []string
	for _, list := range makeVariable(t, "LONG_TESTS") {
		names = append(names, strings.Split(strings.TrimPrefix(list, "$(LONG_TESTS)|"), "|")...)
	}
	packages := strings.Fields(strings.Join(makeVariable(t, "LONG_PACKAGES"), " "))
	test := regexp.MustCompile(`(?m)^func (Test\w+)\(`)
	skipped := regexp.MustCompile(`\nfunc (Test\w+)\(t \*testing\.T\) \{\n\trace\.SkipLong\(`)
	found := map[string]bool{}
	for _, path := range files(t, ".go") {
		if !strings.HasSuffix(path, "_test.go") || strings.Contains(path, "internal/style/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		relative := filepath.Dir(path)
		if long := strings.Count(string(text), "race.SkipLong("); long+strings.Count(string(text), "race.Short(") > 0 {
			if !slices.Contains(packages, "./"+relative) {
				t.Errorf("%s: LONG_PACKAGES lacks ./%s", path, relative)
			}
			matches := skipped.FindAllStringSubmatch(string(text), -1)
			if len(matches) != long {
				t.Errorf("%s: race.SkipLong is not the first statement of a test", path)
			}
			for _, m := range matches {
				if !slices.Contains(names, m[1]) {
					t.Errorf("%s: LONG_TESTS lacks %s", path, m[1])
				}
			}
		}
		for _, m := range test.FindAllStringSubmatch(string(text), -1) {
			if slices.Contains(packages, "./"+relative) {
				found[m[1]] = true
			}
		}
	}
	for _, name := range names {
		if !found[name] {
			t.Errorf("LONG_TESTS: no package in LONG_PACKAGES has %s", name)
		}
	}
}

// makeVariable has the values that the Makefile assigns to a variable, in this order.
func makeVariable(t *testing.T, name string) (values []string) {
	t.Helper()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(makefile)) {
		if value, is := strings.CutPrefix(line, name+" := "); is {
			values = append(values, strings.TrimSpace(value))
		}
	}
	if values == nil {
		t.Fatalf("the Makefile has no %s", name)
	}
	return values
}
