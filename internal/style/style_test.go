package style

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// file is one Go file of the project, parsed.
type file struct {
	path  string // from the root of the repository, with slashes
	lines []string
	ast   *ast.File
	set   *token.FileSet
}

func (f *file) isTest() bool { return strings.HasSuffix(f.path, "_test.go") }

func (f *file) line(p token.Pos) int { return f.set.Position(p).Line }

// folder is the package's folder, "." for the root.
func (f *file) folder() string { return filepath.ToSlash(filepath.Dir(f.path)) }

// root is the repository, seen from this package.
const root = "../.."

// goFiles parses every Go file of the project. bench is a module of its own.
func goFiles(t *testing.T) []*file {
	t.Helper()
	var files []*file
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || d.Name() == "bin") {
			return filepath.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		f, err := parseFile(filepath.ToSlash(rel), string(text))
		files = append(files, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found only %d Go files: the walk is wrong", len(files))
	}
	return files
}

func parseFile(path, text string) (f *file, err error) {
	f = &file{path: path, lines: strings.Split(text, "\n"), set: token.NewFileSet()}
	f.ast, err = parser.ParseFile(f.set, path, text, parser.ParseComments)
	return f, err
}

func TestNoFunctionIsTooLong(t *testing.T) {
	for _, f := range goFiles(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			d, ok := n.(*ast.FuncDecl)
			if !ok || d.Body == nil {
				return true
			}
			if lines := f.line(d.End()) - f.line(d.Pos()) + 1; lines > maxFuncLines {
				t.Errorf("%s:%d: %s has %d lines, more than %d", f.path, f.line(d.Pos()), d.Name.Name, lines, maxFuncLines)
			}
			if params := parameters(d.Type); params > maxParams {
				t.Errorf("%s:%d: %s has %d parameters besides ctx, more than %d",
					f.path, f.line(d.Pos()), d.Name.Name, params, maxParams)
			}
			if deep := depth(d.Body, -1); deep > maxNesting {
				t.Errorf("%s:%d: %s nests %d deep, more than %d", f.path, f.line(d.Pos()), d.Name.Name, deep, maxNesting)
			}
			return true
		})
	}
}

// parameters counts those besides a context and a *testing.T.
func parameters(f *ast.FuncType) int {
	n := 0
	for _, field := range f.Params.List {
		switch typeName(field.Type) {
		case "context.Context", "testing.T", "testing.B", "testing.F", "testing.TB":
			continue
		}
		n += max(1, len(field.Names))
	}
	return n
}

func typeName(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return typeName(e.X)
	case *ast.SelectorExpr:
		return typeName(e.X) + "." + e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

// depth is how deep blocks nest in n; a function literal begins anew.
func depth(n ast.Node, level int) int {
	deepest := level
	ast.Inspect(n, func(c ast.Node) bool {
		if c == n || c == nil {
			return true
		}
		switch c := c.(type) {
		case *ast.FuncLit:
			return false
		case *ast.BlockStmt:
			deepest = max(deepest, depth(c, level+1))
			return false
		case *ast.CaseClause, *ast.CommClause:
			deepest = max(deepest, depth(clauseBody(c), level+1))
			return false
		}
		return true
	})
	return max(deepest, level)
}

func clauseBody(n ast.Node) ast.Node {
	block := &ast.BlockStmt{}
	switch n := n.(type) {
	case *ast.CaseClause:
		block.List = n.Body
	case *ast.CommClause:
		block.List = n.Body
	}
	return block
}

func TestInterfacesAreSmall(t *testing.T) {
	for _, f := range goFiles(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if i, ok := spec.Type.(*ast.InterfaceType); ok && i.Methods.NumFields() > maxMethods {
				t.Errorf("%s:%d: interface %s has %d methods, more than %d",
					f.path, f.line(spec.Pos()), spec.Name.Name, i.Methods.NumFields(), maxMethods)
			}
			return true
		})
	}
}

func TestNoInitAndNoSleepingTests(t *testing.T) {
	for _, f := range goFiles(t) {
		ast.Inspect(f.ast, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				if n.Name.Name == "init" && n.Recv == nil {
					t.Errorf("%s:%d: no init functions", f.path, f.line(n.Pos()))
				}
			case *ast.CallExpr:
				name := typeName(n.Fun)
				if name == "time.Sleep" && f.isTest() && !f.excused(n.Pos()) {
					t.Errorf("%s:%d: no time.Sleep in a test: wait for the event, or say why above the line", f.path, f.line(n.Pos()))
				}
				if name == "os.Exit" && f.ast.Name.Name != "main" && !f.isTest() {
					t.Errorf("%s:%d: only a command exits", f.path, f.line(n.Pos()))
				}
				if strings.HasSuffix(name, ".Skip") && len(n.Args) == 0 || strings.HasSuffix(name, ".SkipNow") {
					t.Errorf("%s:%d: a skipped test says why", f.path, f.line(n.Pos()))
				}
			}
			return true
		})
	}
}

// excused says whether the line at p, or the one above it, explains itself:
// "not a wait: …".
func (f *file) excused(p token.Pos) bool {
	n := f.line(p)
	return strings.Contains(f.lines[n-1], "not a wait") || n > 1 && strings.Contains(f.lines[n-2], "not a wait")
}
