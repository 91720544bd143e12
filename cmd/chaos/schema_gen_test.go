package main

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/checker"
	"github.com/lockchaos/lockchaos/history"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/promise"
)

const modulePath = "github.com/lockchaos/lockchaos"

// object is a JSON object.
type object = map[string]any

// schemas makes JSON Schemas of Go types as encoding/json writes them, with the comments of fields as descriptions.
type schemas struct {
	t        *testing.T
	strict   bool // refuse fields that the type does not have
	defs     object
	comments map[string]map[string]string // by package and type.field
}

// schemaOf is the schema of the output of encoding/json for x.
func schemaOf(t *testing.T, x any, title string, strict bool) object {
	t.Helper()
	s := &schemas{t: t, strict: strict, defs: object{}, comments: map[string]map[string]string{}}
	root := s.of(reflect.TypeOf(x))
	root["$schema"], root["title"], root["$defs"] = "https://json-schema.org/draft/2020-12/schema", title, s.defs
	return root
}

// words are the values of types that have few.
func words() map[reflect.Type][]any {
	return map[reflect.Type][]any{
		reflect.TypeFor[checker.Verdict](): {"", checker.Safe, checker.Unsafe, checker.Inconclusive, checker.NotRun},
		reflect.TypeFor[checker.Outcome](): {checker.Holds, checker.Violated, checker.Undecided, checker.NotApplicable},
		reflect.TypeFor[checker.Class]():   {"", checker.BrokenPromise, checker.OutlivedLease},
		reflect.TypeFor[rundir.State]():    {rundir.Running, rundir.Complete, rundir.Interrupted, rundir.Broken},
		reflect.TypeFor[history.Phase](): {history.Injected, history.TookEffect, history.Healed, history.Missed,
			history.Noted},
	}
}

func (s *schemas) of(t reflect.Type) object {
	if list := words()[t]; list != nil {
		return object{"type": "string", "enum": list}
	}
	if t == reflect.TypeFor[promise.Set]() {
		return object{"type": "array", "items": object{"type": "string", "enum": promise.All.Names()}}
	}
	switch t.Kind() {
	case reflect.Bool:
		return object{"type": "boolean"}
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return object{"type": "integer"}
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return object{"type": "integer", "minimum": 0}
	case reflect.Float32, reflect.Float64:
		return object{"type": "number"}
	case reflect.String:
		return object{"type": "string"}
	case reflect.Slice, reflect.Array:
		return object{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return object{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Pointer:
		return object{"anyOf": []any{s.of(t.Elem()), object{"type": "null"}}}
	case reflect.Struct:
		return s.structure(t)
	}
	return object{} // anything
}

// structure adds a definition of t and returns a reference to it.
func (s *schemas) structure(t reflect.Type) object {
	if t == reflect.TypeFor[time.Time]() {
		return object{"type": "string", "format": "date-time"}
	}
	if t.Implements(reflect.TypeFor[json.Marshaler]()) {
		s.t.Errorf("%v has a form of its own in JSON, which the schema would not show", t)
	}
	name := filepath.Base(t.PkgPath()) + "." + t.Name()
	if _, known := s.defs[name]; !known {
		def := object{"type": "object"}
		s.defs[name] = def
		properties, required := object{}, []string{}
		s.fields(t, properties, &required)
		def["properties"], def["required"] = properties, required
		if s.strict {
			def["additionalProperties"] = false
		}
	}
	return object{"$ref": "#/$defs/" + name}
}

func (s *schemas) fields(t reflect.Type, properties object, required *[]string) {
	for f := range t.Fields() {
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		switch {
		case name == "-":
			continue
		case f.Anonymous && !tagged:
			s.fields(f.Type, properties, required)
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		p := s.of(f.Type)
		if text := s.comment(t, f.Name); text != "" {
			p["description"] = text
		}
		properties[name] = p
		if !strings.Contains(options, "omit") {
			*required = append(*required, name)
		}
	}
}

// comment is the comment of a field in the source.
func (s *schemas) comment(t reflect.Type, field string) string {
	path := strings.TrimPrefix(t.PkgPath(), modulePath+"/")
	if t.PkgPath() == "main" || strings.HasSuffix(t.PkgPath(), "/cmd/chaos") {
		path = "cmd/chaos"
	}
	if s.comments[path] == nil {
		s.comments[path] = s.read(filepath.Join("../..", path))
	}
	return s.comments[path][t.Name()+"."+field]
}

// read is the comments of all fields of a package.
func (s *schemas) read(dir string) map[string]string {
	all := map[string]string{}
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil || len(files) == 0 {
		s.t.Fatalf("no source in %s: %v", dir, err)
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			s.t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if st, ok := spec.Type.(*ast.StructType); ok {
				for _, f := range st.Fields.List {
					for _, name := range f.Names {
						text := f.Doc.Text() + " " + f.Comment.Text()
						all[spec.Name.Name+"."+name.Name] = strings.Join(strings.Fields(text), " ")
					}
				}
			}
			return true
		})
	}
	return all
}
