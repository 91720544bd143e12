package style

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/checker"
)

// section is a part of the design, from its heading to the next.
func section(t *testing.T, heading string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "docs", "design.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), heading)
	if !found {
		t.Fatalf("docs/design.md has no %q", heading)
	}
	part, _, _ := strings.Cut(rest, "\n##")
	return part
}

// TestLayoutIsComplete: each folder of the design is there, or marked as planned.
func TestLayoutIsComplete(t *testing.T) {
	rows := regexp.MustCompile(`(?m)^    (\S+)/ +(.*)$`).FindAllStringSubmatch(section(t, "## 4. Layout"), -1)
	if len(rows) < 10 {
		t.Fatalf("only %d folders found in the layout", len(rows))
	}
	for _, row := range rows {
		entries, _ := os.ReadDir(filepath.Join(root, row[1]))
		if planned := strings.HasPrefix(row[2], "(planned)"); planned == (len(entries) > 0) {
			t.Errorf("docs/design.md: %s has %d entries, and is marked as planned: %v", row[1], len(entries), planned)
		}
	}
}

// TestExampleIsTheScenario: the example of a scenario is a real scenario.
func TestExampleIsTheScenario(t *testing.T) {
	want, err := os.ReadFile(filepath.Join(root, "scenarios", "stories", "failover", "failover.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var got strings.Builder
	for _, line := range strings.Split(section(t, "### 5.5 Scenario"), "\n") {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			got.WriteString(code + "\n")
		}
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("docs/design.md 5.5 (-scenarios/stories/failover/failover.yaml +example):\n%s", diff)
	}
}

// TestPropertiesAreComplete: the design's table has every property, and no other.
func TestPropertiesAreComplete(t *testing.T) {
	listed := map[string]bool{}
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-z· -]+) \|`).FindAllStringSubmatch(section(t, "### 5.6"), -1) {
		for _, name := range strings.Split(row[1], "·") {
			listed[strings.TrimSpace(name)] = true
		}
	}
	delete(listed, "property") // the head of the table
	delete(listed, "---")
	want := map[string]bool{}
	for _, row := range checker.Catalog() {
		want[string(row.Name)] = true
	}
	if diff := cmp.Diff(want, listed); diff != "" {
		t.Errorf("docs/design.md 5.6 (-catalog +table):\n%s", diff)
	}
}

// TestPackagesSayWhatIsPromised: the first paragraph of each top-level package says whether its Go API is promised, as
// section 4 of the design lists it.
func TestPackagesSayWhatIsPromised(t *testing.T) {
	first := regexp.MustCompile(`(?m)^// Package \w+ (?:.*\n)(?:// \S.*\n)*`)
	promised := []string{"lock", "history", "checker", "client", "promise", "topology", "simtest"}
	for _, folder := range append(promised, "adapters", "faults", "workloads", "reports", "scenarios") {
		paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		text := ""
		for _, path := range paths {
			b, _ := os.ReadFile(path)
			text += first.FindString(string(b))
		}
		not := strings.Contains(text, "not a promise")
		if want := slices.Contains(promised, folder); !strings.Contains(text, "promise") || not == want {
			t.Errorf("package %s does not say in its first paragraph whether its API is promised (%v):\n%s", folder, want, text)
		}
	}
}
