package lock_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"strings"
	"testing"
)

// TestExamplesAreShort: the most common uses of a lock take at most fifteen lines, in which the work has the context of
// the hold.
func TestExamplesAreShort(t *testing.T) {
	t.Parallel()
	lines, bodies := make(map[string]int), make(map[string]string)
	for _, name := range []string{"example_test.go", "kinds_example_test.go"} {
		set := token.NewFileSet()
		source, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			if f, ok := d.(*ast.FuncDecl); ok {
				lines[f.Name.Name] = set.Position(f.Body.Rbrace).Line - set.Position(f.Body.Lbrace).Line - 1
				bodies[f.Name.Name] = string(source[set.Position(f.Body.Lbrace).Offset:set.Position(f.Body.Rbrace).Offset])
			}
		}
	}
	for what, name := range map[string]string{
		"one at a time":                       "Example",
		"the lock, or an error at once":       "ExampleMutex_TryAcquire",
		"a wait that ends":                    "ExampleWithWait",
		"the loss of a hold":                  "ExampleHold_Context",
		"a fenced write to PostgreSQL":        "ExampleFencedMutex",
		"first come, first served":            "ExampleFairMutex",
		"five at a time, in several programs": "ExamplePermitSemaphore",
		"three masters":                       "ExampleNewQuorum",
	} {
		if n := lines[name]; n == 0 || n > 15 {
			t.Errorf("%s: %s has %d lines, want 1 to 15", what, name, n)
		}
		if !strings.Contains(bodies[name], ".Context()") && !strings.Contains(bodies[name], ".Do(") {
			t.Errorf("%s: %s does not use the context of the hold", what, name)
		}
	}
}
