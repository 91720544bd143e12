package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"

	"github.com/lockchaos/lockchaos/internal/format"
	"github.com/lockchaos/lockchaos/internal/yamlpath"
)

// Override changes a scenario before it is checked.
type Override struct {
	As    string // as the user wrote it, such as "--clients 0", for errors
	Path  string // keys separated by dots, list entries by index: workload.clients, faults[0].target
	Value string // YAML
}

// Sets are the overrides of --set path=value. One without = has no path, which is an error of [Load].
func Sets(sets []string) []Override {
	var all []Override
	for _, set := range sets {
		path, value, ok := strings.Cut(set, "=")
		if !ok {
			path = ""
		}
		all = append(all, Override{As: fmt.Sprintf("--set %q", format.Truncate(set, 80)), Path: path, Value: value})
	}
	return all
}

// override puts values into source. A value is YAML, so that faults=[] and workload={clients: 2} work as well; null
// removes the key, which a scenario may have.
func override(source []byte, overrides []Override) ([]byte, error) {
	if _, err := inspect(source); err != nil {
		return nil, err
	}
	tree := map[string]any{}
	if err := yaml.Unmarshal(source, &tree); err != nil {
		return nil, syntaxError(err)
	}
	if tree == nil { // the text is null
		tree = map[string]any{}
	}
	for _, o := range overrides {
		if o.Path == "" {
			return nil, fmt.Errorf("%s: write path=value, such as workload.clients=10", o.As)
		}
		var value any
		_, err := inspect([]byte(o.Value))
		if err == nil {
			err = yaml.Unmarshal([]byte(o.Value), &value)
		}
		if err == nil && value == nil {
			err = mayHave(o.Path)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %s", o.As, message(err))
		}
		if verdict, ok := tree["expect"].(string); ok && strings.HasPrefix(o.Path, "expect.") {
			tree["expect"] = map[string]any{"verdict": verdict}
		}
		if err := yamlpath.Set(tree, o.Path, value); err != nil {
			return nil, fmt.Errorf("%s: %w", o.As, err)
		}
	}
	return yaml.Marshal(tree)
}

// mayHave is an error if no scenario has a key at path.
func mayHave(path string) error {
	text, err := yaml.Marshal(yamlpath.Alone(path, nil))
	if err != nil {
		return err
	}
	var s Scenario
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&s); err != nil {
		return syntaxError(err)
	}
	return nil
}

// attribute explains the errors of a text that overrides have changed. The user has never seen that text, so an error
// names the override that it is about, instead of a line. If it is about none of them, the scenario may have been
// wrong before; then its own errors are returned, with their lines.
func attribute(err error, file *ast.File, source []byte, name string, overrides []Override) error {
	var all []error
	unrelated := false
	for _, one := range split(err) {
		path := pathOf(one, file)
		if o := responsible(path, overrides); o != nil {
			all = append(all, fmt.Errorf("%s: %s", o.As, message(one)))
			continue
		}
		unrelated = true
		if path = strings.TrimPrefix(strings.TrimPrefix(path, "$"), "."); path != "" {
			path += ": "
		}
		all = append(all, fmt.Errorf("with %s: %s%w", list(overrides), path, errors.New(message(one))))
	}
	if _, _, before := decode(source, name); unrelated && before != nil {
		return before
	}
	return errors.Join(all...)
}

// list is the first few overrides as the user wrote them.
func list(overrides []Override) string {
	var words []string
	for _, o := range overrides { // one flag may set several keys
		if !slices.Contains(words, o.As) {
			words = append(words, o.As)
		}
	}
	if len(words) > 5 {
		words = append(words[:5], "…")
	}
	return strings.Join(words, ", ")
}

// split reverses errors.Join.
func split(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

// pathOf is the path of an error, such as $.workload.clients, or "".
func pathOf(err error, file *ast.File) string {
	var m *mistake
	if !errors.As(err, &m) || file == nil {
		return ""
	}
	if m.path != "" || m.line == 0 {
		return m.path
	}
	f := finder{line: m.line, column: m.column}
	ast.Walk(&f, file.Docs[0].Body)
	return f.path
}

// finder looks for the path of a position.
type finder struct {
	line, column int
	path         string
}

// Visit implements [ast.Visitor].
func (f *finder) Visit(node ast.Node) ast.Visitor {
	if p := node.GetToken().Position; p.Line == f.line && p.Column == f.column {
		f.path = node.GetPath()
	}
	return f
}

// responsible is the last override that has set the value at path, a section around it, or something in it; nil: none.
func responsible(path string, overrides []Override) *Override {
	for _, related := range []func(path, set string) bool{
		yamlpath.Within,
		func(path, set string) bool { return path != "$" && yamlpath.Within(set, path) },
	} {
		for i := len(overrides) - 1; i >= 0; i-- {
			if path != "" && related(path, "$."+overrides[i].Path) {
				return &overrides[i]
			}
		}
	}
	return nil
}

// message is an error without its position.
func message(err error) string {
	if m, ok := errors.AsType[*mistake](err); ok {
		return m.message
	}
	if y, ok := errors.AsType[yaml.Error](err); ok {
		return y.GetMessage()
	}
	return strings.TrimPrefix(err.Error(), "scenario: ")
}
