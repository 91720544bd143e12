package scenarios

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/lexer"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/lockchaos/lockchaos/internal/nearest"
)

// Bounds of a scenario's text. A scenario of a few hundred lines is far below them; a text beyond them is a mistake,
// or an attack on the parser.
const (
	maxText  = 32 << 10 // bytes
	maxDepth = 16       // of brackets, or of dashes in one line
)

// inspect parses untrusted YAML and refuses constructs that a scenario never needs: aliases (a few lines of them expand
// to gigabytes), tags, deep nesting, and several documents, of which all but one would be ignored.
func inspect(source []byte) (*ast.File, error) {
	switch {
	case len(source) > maxText:
		return nil, fmt.Errorf("scenario: the text has %d bytes; the limit is %d", len(source), maxText)
	case !utf8.Valid(source) || bytes.IndexByte(source, 0) >= 0:
		return nil, errors.New("scenario: the text is not UTF-8")
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
			return nil, mistakeAt(t, "a scenario cannot have anchors, aliases or tags (&, *, <<, !): write the value out")
		}
		if max(depth, dashes) > maxDepth {
			return nil, mistakeAt(t, "lists or sections are nested more than %d deep", maxDepth)
		}
	}
	file, err := parser.ParseBytes(source, 0)
	if err != nil {
		return nil, syntaxError(err)
	}
	if len(file.Docs) > 1 {
		return nil, errors.New("scenario: the text has more than one document (---); one file is one scenario")
	}
	return file, nil
}

// syntaxError converts an error of the YAML library to a mistake.
func syntaxError(err error) error {
	if unknown, ok := errors.AsType[*yaml.UnknownFieldError](err); ok {
		name, known := unknown.Token.Value, fields()
		if now := formerExpect(name); now != "" {
			return mistakeAt(unknown.Token, "unknown key %q: %s", name, now)
		}
		if f, ok := known[name]; ok {
			return mistakeAt(unknown.Token, "unknown key %q (did you mean %s?)", name, strings.Join(f.paths, " or "))
		}
		return mistakeAt(unknown.Token, "unknown key %q%s", name, nearest.Or(name, slices.Sorted(maps.Keys(known)),
			" (see chaos list keys)"))
	}
	if wrongType, ok := errors.AsType[*yaml.TypeError](err); ok {
		return mistakeAt(wrongType.Token, "%s", expected(wrongType.DstType.Kind()))
	}
	if misplaced, ok := errors.AsType[*yaml.UnexpectedNodeTypeError](err); ok {
		kind := reflect.Struct
		if misplaced.Expected == ast.SequenceType {
			kind = reflect.Slice
		}
		return mistakeAt(misplaced.Token, "%s", expected(kind))
	}
	if y := yaml.Error(nil); errors.As(err, &y) && y.GetToken() != nil {
		return mistakeAt(y.GetToken(), "%s", y.GetMessage())
	}
	return fmt.Errorf("scenario: %s", strings.TrimSpace(yaml.FormatError(err, false, true)))
}

func expected(k reflect.Kind) string {
	switch k {
	case reflect.Bool:
		return "expected true or false"
	case reflect.Int:
		return "expected a whole number"
	case reflect.String:
		return "expected text"
	case reflect.Slice:
		return "expected a list: [a, b]"
	}
	return "expected a section: {key: value}"
}

// field is a key of a scenario or of one of its sections.
type field struct {
	typ   reflect.Type // in the section that was visited last
	paths []string     // with the sections, such as workload.lease
}

// fields are the keys of a scenario and of all its sections, by name.
func fields() map[string]field {
	all := map[string]field{}
	var add func(section string, t reflect.Type)
	add = func(section string, t reflect.Type) {
		for ; t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map; t = t.Elem() {
			if t.Kind() == reflect.Slice {
				section = strings.TrimSuffix(section, ".") + "[]."
			}
		}
		if t.Kind() != reflect.Struct {
			return
		}
		for f := range t.Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("yaml"), ","); name != "-" {
				all[name] = field{f.Type, append(all[name].paths, section+name)}
				add(section+name+".", f.Type)
			}
		}
	}
	add("", reflect.TypeFor[Scenario]())
	return all
}

// numberCheck looks for durations without a unit and for fractions, which the YAML library rounds, or refuses without
// a position.
type numberCheck struct {
	fields map[string]field
	err    error
}

// Visit implements [ast.Visitor].
func (n *numberCheck) Visit(node ast.Node) ast.Visitor {
	pair, ok := node.(*ast.MappingValueNode)
	if !ok || n.err != nil {
		return n
	}
	if strings.Contains(pair.GetPath(), "options") {
		return nil // options are text
	}
	value := pair.Value.GetToken()
	if n.fields[pair.Key.GetToken().Value].typ == reflect.TypeFor[time.Duration]() {
		if _, err := time.ParseDuration(value.Value); err != nil {
			n.err = mistakeAt(value, "%q is not a duration: write a number with its unit, such as 3s or 500ms", value.Value)
		}
	} else if pair.Value.Type() == ast.FloatType {
		n.err = mistakeAt(value, "%s is not a whole number", value.Value)
	}
	return n
}
