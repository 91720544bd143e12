package lock

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/internal/testkit/golden"
)

// minRegressions is how many bugs of other locks must have a test.
const minRegressions = 60

// Tests of bugs of other locks name them in comments, "Regression:" and issues or
// projects. The table in docs/explanation/locks.md is made from these.
func TestRegressionsAreListed(t *testing.T) {
	t.Parallel()
	marked := regexp.MustCompile(`((?:// Regression: .+\n)+)func (Test\w+)\(t \*testing\.T\)`)
	paths, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	bugs := map[string]bool{}
	var rows []string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range marked.FindAllStringSubmatch(string(text), -1) {
			lines := strings.Split(strings.TrimSpace(m[1]), "\n")
			for i, line := range lines {
				lines[i] = strings.TrimPrefix(line, "// Regression: ")
			}
			reported := strings.Join(lines, ", ")
			for _, bug := range strings.Split(reported, ", ") {
				bugs[bug] = true
			}
			rows = append(rows, fmt.Sprintf("| %s | `%s` |", reported, m[2]))
		}
	}
	slices.Sort(rows)
	if len(bugs) < minRegressions {
		t.Errorf("tests for %d bugs, want %d or more", len(bugs), minRegressions)
	}
	table := fmt.Sprintf("%d bugs, %d tests.\n\n| reported as, or read in the code of | test |\n| --- | --- |\n%s\n",
		len(bugs), len(rows), strings.Join(rows, "\n"))
	golden.Block(t, "../docs/explanation/locks.md", "<!-- regressions -->\n", "<!-- /regressions -->",
		func(string) string { return table })
}
