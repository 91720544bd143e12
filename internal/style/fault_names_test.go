package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/lockchaos/lockchaos/faults"
)

// alsoNames are string literals that are spelled like a fault and name something else, by folder.
var alsoNames = map[string][]string{
	"checker": {"foreign-data"},                                           // a rule of damage
	"reports": {"foreign-data", "message-lost", "split-brain", "latency"}, // causes in JSON, a plot
}

// TestFaultsOwnTheirWords: reports, rules and workloads read the class of a fault from the history, and know none by
// its name, so that a new fault needs no change there.
func TestFaultsOwnTheirWords(t *testing.T) {
	names := map[string]bool{}
	for _, row := range faults.Catalog() {
		names[row.Name] = true
	}
	for _, folder := range []string{"checker", "reports", "workloads"} {
		for _, name := range stringsOf(t, folder) {
			if names[name] && !slices.Contains(alsoNames[folder], name) {
				t.Errorf("%s names the fault %s: ask for its class and object (history.FaultValue)", folder, name)
			}
		}
	}
}

// stringsOf are the string literals of the packages in and below a folder, without tests.
func stringsOf(t *testing.T, folder string) (all []string) {
	t.Helper()
	for _, path := range files(t, ".go") {
		if !strings.HasPrefix(path, folder+"/") || strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, path), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if text, err := strconv.Unquote(lit.Value); err == nil {
					all = append(all, text)
				}
			}
			return true
		})
	}
	if len(all) == 0 {
		t.Fatalf("no Go files in %s", folder)
	}
	return all
}
