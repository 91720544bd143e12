package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/printer"
	"github.com/goccy/go-yaml/token"

	"github.com/lockchaos/lockchaos/internal/nearest"
)

// Bounds of a scenario's text. A scenario of a few hundred lines is far inside
// them; what is outside is a mistake, or is meant to exhaust the reader.
const (
	maxText  = 32 << 10 // bytes
	maxDepth = 16       // of brackets, or of dashes in one line
)

// inspect parses YAML text that may come from anybody and refuses what a
// scenario never needs: aliases (a few lines of them unfold to gigabytes),
// tags, deep nesting, several documents of which all but one would be ignored.
func inspect(source []byte) (*ast.File, error) {
	switch {
	case len(source) > maxText:
		return nil, fmt.Errorf("scenario: the text has %d bytes, more than %d", len(source), maxText)
	case !utf8.Valid(source) || bytes.IndexByte(source, 0) >= 0:
		return nil, errors.New("scenario: this is not a text in UTF-8")
	}
	depth, dashes := 0, 0
	for _, t := range lexer.Tokenize(string(source)) {
		switch t.Type {
		case token.SequenceEntryType:
			dashes++ // "- - - x" is a list in a list in a list
			if t.Prev == nil || t.Prev.Type != token.SequenceEntryType || t.Prev.Position.Line != t.Position.Line {
				dashes = 1
			}
		case token.MappingStartType, token.SequenceStartType:
			depth++
		case token.MappingEndType, token.SequenceEndType:
			depth--
		case token.AliasType, token.AnchorType, token.MergeKeyType, token.TagType:
			return nil, complain(t, "a scenario has no anchors, aliases and tags (&, *, <<, !): write the value out")
		}
		if max(depth, dashes) > maxDepth {
			return nil, complain(t, "lists or sections are nested more than %d deep", maxDepth)
		}
	}
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		return nil, syntax(err)
	}
	if len(file.Docs) > 1 {
		return nil, errors.New("scenario: one file is one scenario, and this has more than one (---)")
	}
	return file, nil
}

// mistake is something wrong with a scenario, and where.
type mistake struct {
	path         string // such as $.workload.clients; empty: only line and column are known
	line, column int    // 0: it is about what is not there
	message      string
	excerpt      string // the lines around it, with a caret
}

// Error is the message with its place.
func (m *mistake) Error() string {
	if m.line == 0 {
		return fmt.Sprintf("scenario: %s: %s", strings.TrimPrefix(m.path, "$."), m.message)
	}
	return fmt.Sprintf("scenario: [%d:%d] %s\n%s", m.line, m.column, m.message, m.excerpt)
}

// complain says what is wrong at t, with line, column and a caret.
func complain(t *token.Token, format string, args ...any) *mistake {
	var p printer.Printer
	return &mistake{line: t.Position.Line, column: t.Position.Column, message: fmt.Sprintf(format, args...),
		excerpt: strings.TrimRight(p.PrintErrorToken(t, false), " \n")}
}

// syntax words an error of the YAML library.
func syntax(err error) error {
	var unknown *yaml.UnknownFieldError
	if errors.As(err, &unknown) {
		name, known := unknown.Token.Value, keys(reflect.TypeFor[Scenario]())
		if slices.Contains(known, name) {
			return complain(unknown.Token, "the key %s belongs to another section", name)
		}
		return complain(unknown.Token, "no key is called %q%s", name, nearest.Hint(name, known))
	}
	var mistyped *yaml.TypeError
	if errors.As(err, &mistyped) {
		return complain(mistyped.Token, "%s", wanted(mistyped.DstType))
	}
	var misplaced *yaml.UnexpectedNodeTypeError
	if errors.As(err, &misplaced) {
		kind := reflect.Struct
		if misplaced.Expected == ast.SequenceType {
			kind = reflect.Slice
		}
		return complain(misplaced.Token, "%s", wantedKind(kind))
	}
	if y := yaml.Error(nil); errors.As(err, &y) && y.GetToken() != nil {
		return complain(y.GetToken(), "%s", y.GetMessage())
	}
	return fmt.Errorf("scenario: %s", strings.TrimSpace(yaml.FormatError(err, false, true)))
}

// wanted says what belongs where something else stands.
func wanted(t reflect.Type) string { return wantedKind(t.Kind()) }

func wantedKind(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "this has to be true or false"
	case reflect.Int:
		return "this has to be a whole number"
	case reflect.String:
		return "this has to be one word or sentence"
	case reflect.Slice:
		return "this has to be a list: [a, b]"
	}
	return "this has to be a section: {key: value}"
}

// keys are the names of every key of a scenario, of all its sections.
func keys(t reflect.Type) []string {
	var names []string
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("yaml"), ",")
		if name == "-" { // set by the plan
			continue
		}
		names = append(append(names, name), keys(t.Field(i).Type)...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// durations are the keys whose values are a time with its unit.
//
//nolint:gochecknoglobals // computed once, never changed
var durations = durationKeys(reflect.TypeFor[Scenario]())

func durationKeys(t reflect.Type) map[string]bool {
	found := map[string]bool{}
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return found
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); f.Type == reflect.TypeFor[time.Duration]() {
			found[name] = true
		}
		for name := range durationKeys(f.Type) { // order does not matter: a set
			found[name] = true
		}
	}
	return found
}

// numbers looks for times without a unit and for broken numbers, which the
// YAML library takes and rounds, or refuses without saying where.
type numbers struct{ err error }

// Visit looks at one node, as [ast.Walk] asks.
func (n *numbers) Visit(node ast.Node) ast.Visitor {
	pair, ok := node.(*ast.MappingValueNode)
	if !ok || n.err != nil {
		return n
	}
	if strings.Contains(pair.GetPath(), "options") {
		return nil // whatever stands there is handed on as text
	}
	value := pair.Value.GetToken()
	if durations[pair.Key.GetToken().Value] {
		if _, err := time.ParseDuration(value.Value); err != nil {
			n.err = complain(value, "%q is not a time: write a number with its unit, such as 3s or 500ms", value.Value)
		}
	} else if pair.Value.Type() == ast.FloatType {
		n.err = complain(value, "%s is not a whole number", value.Value)
	}
	return n
}
