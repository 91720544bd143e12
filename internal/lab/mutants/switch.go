package mutants

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// switchFile is the file that is added to package lock; %s is the table of changes to scripts.
const switchFile = `package lock

import (
	"os"
	"strings"
)

var activeMutant = os.Getenv("` + Switch + `")

var mutantScripts = map[string][3]string{
%s}

func mutateScript(name, text string) string {
	if m, ok := mutantScripts[activeMutant]; ok && m[0] == "script/"+name+".lua" {
		return strings.Replace(text, m[1], m[2], 1)
	}
	return text
}
`

// innerSwitchFile is the file that is added to each package below lock that has rows; %s is its name.
const innerSwitchFile = `package %s

import "os"

var activeMutant = os.Getenv("` + Switch + `")
`

// The code that reads scripts, and its replacement.
const (
	readsScript   = "b.Write(text)"
	mutatesScript = "b.WriteString(mutateScript(name, string(text)))"
)

// switched returns the files of package lock, and of the packages below it, with the rows in them, of which [Switch]
// chooses one, and the rows that no switch can choose, because they change no function.
func switched(dir string, rows []Row) (files map[string]string, alone []Row, err error) {
	files = map[string]string{}
	var scripts strings.Builder
	byFile := map[string][]Row{"script.go": nil}
	for _, r := range rows {
		if r.Lua() {
			fmt.Fprintf(&scripts, "\t%q: {%q, %q, %q},\n", r.Name, r.File, r.Old, r.New)
			continue
		}
		byFile[r.File] = append(byFile[r.File], r)
	}
	for name, some := range byFile { // in any order: the files are independent
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return nil, nil, fmt.Errorf("planting bugs: %w", err)
		}
		source, left, err := switchFunctions(name, string(text), some)
		if err != nil {
			return nil, nil, err
		}
		files[name] = source
		alone = append(alone, left...)
	}
	if strings.Count(files["script.go"], readsScript) != 1 {
		return nil, nil, fmt.Errorf("planting bugs: lock/script.go does not read scripts with %s", readsScript)
	}
	files["script.go"] = strings.Replace(files["script.go"], readsScript, mutatesScript, 1)
	for name := range files {
		if folder := path.Dir(name); folder != "." {
			files[path.Join(folder, "mutants_switch.go")] = fmt.Sprintf(innerSwitchFile, path.Base(folder))
		}
	}
	files["mutants_switch.go"] = fmt.Sprintf(switchFile, scripts.String())
	return files, alone, nil
}

// insertion is text to insert into a source.
type insertion struct {
	at   int
	text string
}

// switchFunctions adds, for each row, a changed copy of the function that it is in, and has the function call it.
func switchFunctions(name, source string, rows []Row) (out string, alone []Row, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, fmt.Errorf("planting bugs: %w", err)
	}
	var inserts []insertion
	var copies strings.Builder
	for _, r := range rows {
		if _, err := r.Apply(source); err != nil {
			return "", nil, err
		}
		at := strings.Index(source, r.Old)
		f := functionAt(file, set, at, at+len(r.Old))
		call, ok := callOf(f, mutantName(f, r))
		if !ok {
			alone = append(alone, r)
			continue
		}
		start, nameEnd := set.Position(f.Pos()).Offset, set.Position(f.Name.End()).Offset
		end, body := set.Position(f.End()).Offset, set.Position(f.Body.Lbrace).Offset+1
		inserts = append(inserts, insertion{body, fmt.Sprintf(" if activeMutant == %q { %s };", r.Name, call)})
		changed := source[start:at] + r.New + source[at+len(r.Old):end]
		named := source[start:set.Position(f.Name.Pos()).Offset] + mutantName(f, r)
		copies.WriteString("\n" + named + changed[nameEnd-start:] + "\n")
	}
	slices.SortStableFunc(inserts, func(a, b insertion) int { return b.at - a.at }) // last first
	for _, i := range inserts {
		source = source[:i.at] + i.text + source[i.at:]
	}
	return source + copies.String(), alone, nil
}

// functionAt is the function whose body has the bytes from start to end; nil: none has.
func functionAt(file *ast.File, set *token.FileSet, start, end int) *ast.FuncDecl {
	for _, d := range file.Decls {
		f, ok := d.(*ast.FuncDecl)
		if ok && f.Body != nil && set.Position(f.Body.Lbrace).Offset < start && end <= set.Position(f.End()).Offset {
			return f
		}
	}
	return nil
}

func mutantName(f *ast.FuncDecl, r Row) string {
	if f == nil {
		return ""
	}
	return f.Name.Name + "_" + strings.ReplaceAll(r.Name, "-", "_")
}

// callOf is the statement by which f calls its copy of that name instead. It is not ok if f names not all of its
// parameters.
func callOf(f *ast.FuncDecl, name string) (statement string, ok bool) {
	if f == nil {
		return "", false
	}
	target := name
	if f.Recv != nil {
		if len(f.Recv.List[0].Names) == 0 {
			return "", false
		}
		target = f.Recv.List[0].Names[0].Name + "." + name
	}
	var args []string
	for _, p := range f.Type.Params.List {
		if len(p.Names) == 0 {
			return "", false
		}
		for _, n := range p.Names {
			arg := n.Name
			if _, variadic := p.Type.(*ast.Ellipsis); variadic {
				arg += "..."
			}
			args = append(args, arg)
		}
	}
	if slices.Contains(args, "_") {
		return "", false
	}
	call := target + "(" + strings.Join(args, ", ") + ")"
	if f.Type.Results == nil {
		return call + "; return", true
	}
	return "return " + call, true
}
