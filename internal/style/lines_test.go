package style

import (
	"fmt"
	"go/ast"
	"go/token"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNoFileIsTooLong(t *testing.T) {
	for _, f := range goFiles(t) {
		if len(f.lines) > maxFileLines {
			t.Errorf("%s has %d lines, more than %d", f.path, len(f.lines), maxFileLines)
		}
		for _, n := range longLines(f) {
			t.Errorf("%s:%d: the line has %d characters, more than %d", f.path, n, len([]rune(f.lines[n-1])), maxLineRunes)
		}
	}
}

// longLines are the numbers of the lines that are too long and could be broken.
func longLines(f *file) []int {
	fixed := unbreakable(f)
	var long []int
	for i, line := range f.lines {
		if len([]rune(line))-fixed[i+1] > maxLineRunes {
			long = append(long, i+1)
		}
	}
	return long
}

// unbreakable is how many characters of each line Go does not let anybody break:
// struct tags, directives, and, in a test, raw strings, which are texts as they
// have to come in or out. A sentence in quotes is not: it can be put together.
func unbreakable(f *file) map[int]int {
	fixed := map[int]int{}
	for _, group := range f.ast.Comments {
		for _, c := range group.List {
			if strings.HasPrefix(c.Text, "//go:") {
				f.count(fixed, c)
			}
		}
	}
	ast.Inspect(f.ast, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Field:
			if n.Tag != nil && !f.isTest() { // in a test it counts as a raw string
				f.count(fixed, n.Tag)
			}
		case *ast.BasicLit:
			if f.isTest() && strings.HasPrefix(n.Value, "`") {
				f.count(fixed, n)
			}
		}
		return true
	})
	return fixed
}

// count adds the characters that n has on each of its lines.
func (f *file) count(on map[int]int, n ast.Node) {
	from, to := f.set.Position(n.Pos()), f.set.Position(n.End())
	for i := from.Line; i <= to.Line; i++ {
		line := f.lines[i-1]
		end, begin := len(line), 0
		if i == to.Line {
			end = to.Column - 1
		}
		if i == from.Line {
			begin = from.Column - 1
		}
		on[i] += len([]rune(line[begin:end]))
	}
}

func TestLongLinesAreFound(t *testing.T) {
	long := strings.Repeat("x", maxLineRunes)
	text := "package p\n\n" + strings.Join([]string{
		"//go:generate " + long,           // 3
		"// A comment of " + long,         // 4
		"var a = \"" + long + "\" + \"\"", // 5
		"var b = `" + long + "`",          // 6
		"type c struct {",                 // 7
		"\td int `json:\"" + long + "\"`", // 8
		"}",                               // 9
		"var e = `",                       // 10
		long + long,                       // 11
		"` + \"" + long + "\"",            // 12
		"var short = 1 // " + strings.Repeat("é", 100), // 13: characters, not bytes
	}, "\n") + "\n"
	for _, c := range []struct {
		path string
		want []int
	}{
		{"p/p.go", []int{4, 5, 6, 11, 12}},
		{"p/p_test.go", []int{4, 5, 12}},
	} {
		f, err := parseFile(c.path, text)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, longLines(f)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.path, diff)
		}
	}
}

// at is a place in a file, as every complaint begins with it.
func (f *file) at(p token.Pos) string { return fmt.Sprintf("%s:%d", f.path, f.line(p)) }
