package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// exampleLines is how long an example of package lock may be.
const exampleLines = 15

// TestExamplesOfLockAreShort: the programs that people copy first are examples, which go test compiles, and short.
func TestExamplesOfLockAreShort(t *testing.T) {
	wanted := map[string]string{
		"Example": "a lock", "ExampleMutex_TryAcquire": "a try", "ExampleWithWait": "a deadline",
		"ExampleHold_Context": "watching the hold", "ExampleFencedMutex": "a fenced write to PostgreSQL",
		"ExampleFairMutex": "a fair queue", "ExamplePermitSemaphore": "a semaphore of five", "ExampleNewQuorum": "RedLock",
	}
	files, err := filepath.Glob(filepath.Join(root, "lock", "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no tests of package lock: %v", err)
	}
	set := token.NewFileSet()
	for _, path := range files {
		file, err := parser.ParseFile(set, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
				continue
			}
			delete(wanted, f.Name.Name)
			if n := set.Position(f.Body.Rbrace).Line - set.Position(f.Body.Lbrace).Line - 1; n > exampleLines {
				t.Errorf("%s has %d lines, more than %d", f.Name.Name, n, exampleLines)
			}
		}
	}
	for name, what := range wanted {
		t.Errorf("no %s (%s)", name, what)
	}
}
