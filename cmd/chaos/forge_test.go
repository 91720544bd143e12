package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/reports"
)

// TestNamesForgeNoLines: keys and owners of a history with line breaks and bidirectional marks; no output has a line
// that begins with their text, nor a mark.
func TestNamesForgeNoLines(t *testing.T) {
	forged := `k\nSAFE: all is well\r\nsafe \u202e\u2028SAFE: \u001b[2J`
	var lines []string
	for i, e := range []string{"invoke 0", "ok 0", "invoke 1", "ok 1"} {
		var kind string
		var process int
		_, _ = fmt.Sscan(e, &kind, &process)
		lines = append(lines, fmt.Sprintf(
			`{"index":%d,"time":%d,"type":%q,"process":%d,"f":"acquire","key":"%s","value":{"owner":"%d%s"}}`,
			i, (i+1)*1e9, kind, process, forged, process, forged))
	}
	path := filepath.Join(t.TempDir(), "history.jsonl")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tests := [][]string{{"check", path}, {"check", "--stream", path}, {"check", path, "--explain"}, {"check", path, "--json"}}
	for _, spec := range reports.Catalog() {
		if spec.Name != "png" { // which is not text
			tests = append(tests, []string{"report", path, "--format", spec.Name})
		}
	}
	for _, args := range tests {
		code, stdout, stderr := chaos(args...)
		want := exitUnsafe
		if args[0] == "report" {
			want = exitSafe
		}
		if code != want || want == exitUnsafe && !strings.Contains(stdout, `k\nSAFE: all is well`) {
			t.Errorf("%v: exit code %d, want 1 and the key in one line\n%s%s", args, code, stdout, stderr)
		}
		for line := range strings.Lines(stdout + stderr) {
			if strings.HasPrefix(strings.ToUpper(strings.TrimSpace(line)), "SAFE") ||
				strings.ContainsAny(line, "\u202e\u2028\x1b\r") {
				t.Errorf("%v: forged line %q", args, line)
			}
		}
	}
}
