package style

import (
	"fmt"
	"go/ast"
	"go/token"
	"path"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestGlobalsDoNotChange looks for changes of package-level variables outside
// their declaration.
func TestGlobalsDoNotChange(t *testing.T) {
	for _, found := range changes(goFiles(t)) {
		t.Error(found)
	}
}

// changes are the places where a variable of a package is changed: assigned to,
// counted up, written into as a map, slice, array or struct, emptied; also those
// of other packages, and variables that are made to be changed, such as a mutex.
//
// Names are resolved without types: the parser knows what is declared in a
// function or in the same file, and what it does not know is of the package's
// other files, or an import.
func changes(files []*file) []string {
	globals := map[string]bool{} // package + "." + name
	var found []string
	for _, f := range files {
		for spec := range f.globals() {
			for _, name := range spec.Names {
				globals[f.pkg()+"."+name.Name] = name.Name != "_"
			}
			kind := typeName(spec.Type)
			state := strings.HasPrefix(kind, "sync.") || strings.HasPrefix(kind, "atomic.")
			if state && spec.Names[0].Name != "_" { // var _ sync.Locker = … is a statement about a type
				found = append(found, fmt.Sprintf("%s: a package-level variable of type %s is there to be changed",
					f.at(spec.Pos()), kind))
			}
		}
	}
	for _, f := range files {
		own := f.globals()
		for _, e := range f.changed() {
			if name := f.globalOf(e, own, globals); name != "" {
				found = append(found, fmt.Sprintf("%s: the package-level variable %s is changed", f.at(e.Pos()), name))
			}
		}
	}
	return found
}

// pkg tells packages apart, also a test's from the one that it tests.
func (f *file) pkg() string { return f.folder() + " " + f.ast.Name.Name }

// globals are the declarations of package-level variables in this file.
func (f *file) globals() map[*ast.ValueSpec]bool {
	own := map[*ast.ValueSpec]bool{}
	for _, d := range f.ast.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
			for _, spec := range g.Specs {
				own[spec.(*ast.ValueSpec)] = true
			}
		}
	}
	return own
}

// changed are all expressions that something is written to.
func (f *file) changed() []ast.Expr {
	var all []ast.Expr
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.AssignStmt:
			if n.Tok != token.DEFINE {
				all = append(all, n.Lhs...)
			}
		case *ast.IncDecStmt:
			all = append(all, n.X)
		case *ast.RangeStmt:
			if n.Tok == token.ASSIGN {
				all = append(all, n.Key, n.Value)
			}
		case *ast.CallExpr:
			if name := typeName(n.Fun); (name == "delete" || name == "clear" || name == "copy") && len(n.Args) > 0 {
				all = append(all, n.Args[0])
			}
		}
		return true
	})
	return all
}

// globalOf is the package-level variable that a write to e changes, or "".
func (f *file) globalOf(e ast.Expr, own map[*ast.ValueSpec]bool, globals map[string]bool) string {
	id, field := rootOf(e)
	if id == nil {
		return ""
	}
	if id.Obj != nil {
		if spec, ok := id.Obj.Decl.(*ast.ValueSpec); ok && own[spec] {
			return id.Name
		}
		return "" // declared in a function
	}
	if globals[f.pkg()+"."+id.Name] {
		return id.Name
	}
	if field != "" && f.imports(id.Name) {
		return id.Name + "." + field
	}
	return ""
}

// rootOf is the name that an expression begins with, as g in g.x[0].y, and what
// is chosen of it first.
func rootOf(e ast.Expr) (id *ast.Ident, field string) {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x, field
		case *ast.SelectorExpr:
			e, field = x.X, x.Sel.Name
		case *ast.IndexExpr:
			e = x.X
		case *ast.SliceExpr:
			e = x.X
		case *ast.StarExpr:
			e = x.X
		case *ast.ParenExpr:
			e = x.X
		default:
			return nil, ""
		}
	}
}

// imports says whether a name is that of an imported package.
func (f *file) imports(name string) bool {
	for _, spec := range f.ast.Imports {
		local := path.Base(strings.Trim(spec.Path.Value, `"`))
		if spec.Name != nil {
			local = spec.Name.Name
		}
		if local == name {
			return true
		}
	}
	return false
}

// badGlobals changes package-level variables in every way that there is.
const badGlobals = `package p

import (
	"os"
	"sync"
)

var table = map[string]int{}
var list [3]int
var state struct{ n int }
var where *int
var guard sync.Mutex

func changes() {
	table["a"] = 1
	list[0]++
	state.n += 2
	*where = 3
	elsewhere = 4
	far["a"].deep[0].x = 5
	delete(table, "a")
	clear(far)
	for state.n = range 3 {
	}
	os.Args = nil
	(list)[1] = 6
	copy(list[:], []int{7})
}
`

// goodGlobals changes only what is its own, under the same names.
const goodGlobals = `package p

var elsewhere int
var far map[string]struct{ deep []struct{ x int } }

type state2 struct{ n int }

func (s *state2) none(elsewhere int) (list []int) {
	table, state := map[string]int{}, state2{}
	table["a"], state.n = 1, 2
	elsewhere++
	s.n = len(far) + elsewhere
	list = append(list, 1)
	for i, far := range list {
		list[i] = far
		far++
	}
	func() { delete(table, "a"); state.n-- }()
	os := s
	os.n = 3
	return list
}
`

func TestChangesOfGlobalsAreFound(t *testing.T) {
	var files []*file
	for name, text := range map[string]string{"p/bad.go": badGlobals, "p/good.go": goodGlobals} {
		f, err := parseFile(name, text)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	var want []string
	for i, what := range []string{"table", "list", "state", "where", "elsewhere", "far", "table", "far", "state"} {
		want = append(want, fmt.Sprintf("p/bad.go:%d: the package-level variable %s is changed", 15+i, what))
	}
	want = append(want, "p/bad.go:25: the package-level variable os.Args is changed",
		"p/bad.go:26: the package-level variable list is changed", "p/bad.go:27: the package-level variable list is changed",
		"p/bad.go:12: a package-level variable of type sync.Mutex is there to be changed")
	sorted := cmp.Transformer("sorted", func(all []string) map[string]int {
		n := map[string]int{}
		for _, s := range all {
			n[s]++
		}
		return n
	})
	if diff := cmp.Diff(want, changes(files), sorted); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
