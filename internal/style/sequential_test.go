package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"strings"
	"testing"
)

// TestSequentialPackagesHaveNoGoroutine: the race detector may leave out the packages that the Makefile names
// SEQUENTIAL. Their tests skip nothing with -short but the LONG_TESTS, so that make test and make test-all together run
// all of them.
func TestSequentialPackagesHaveNoGoroutine(t *testing.T) {
	packages := strings.Fields(strings.Join(makeVariable(t, "SEQUENTIAL"), " "))
	if len(packages) == 0 {
		t.Fatal("SEQUENTIAL names no package")
	}
	for _, dir := range packages {
		paths, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
		if err != nil || len(paths) == 0 {
			t.Errorf("SEQUENTIAL: %s has no Go files: %v", dir, err)
		}
		for _, path := range paths {
			checkSequential(t, path)
		}
	}
}

func checkSequential(t *testing.T, path string) {
	t.Helper()
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, path, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	isTest := strings.HasSuffix(path, "_test.go")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			if !isTest {
				t.Errorf("%s: a goroutine in a package of SEQUENTIAL", set.Position(n.Pos()))
			}
		case *ast.SelectorExpr:
			x, _ := n.X.(*ast.Ident)
			switch {
			case n.Sel.Name == "Go" && !isTest:
				t.Errorf("%s: a goroutine in a package of SEQUENTIAL", set.Position(n.Pos()))
			case n.Sel.Name == "Short" && x != nil && x.Name == "testing":
				t.Errorf("%s: no target runs what a package of SEQUENTIAL skips with -short", set.Position(n.Pos()))
			}
		}
		return true
	})
}
