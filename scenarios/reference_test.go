package scenarios

import (
	"encoding/json"
	"fmt"
	"strings"
)

// schemaText is the JSON Schema (draft 2020-12) of a scenario, for editors and other programs. It knows the keys, their
// types and their values; `chaos run --dry-run` also checks combinations of keys.
func schemaText() ([]byte, error) {
	root := object{Title: "A scenario of lockchaos", Schema: "https://json-schema.org/draft/2020-12/schema"}
	for _, k := range Keys() {
		section, name := &root, k.Path
		if i := strings.LastIndexByte(k.Path, '.'); i >= 0 {
			section, name = root.at(k.Path[:i]), k.Path[i+1:]
		}
		section.at(name).set(k)
		if k.required {
			section.Required = append(section.Required, name)
		}
	}
	root.at("faults[].amount").Pattern = "^-?" + durationPattern[1:] // clocks also step back
	root.close()
	expect := root.Properties["expect"]
	expect.Type, expect.Required = []string{"string", typeObject, "null"}, []string{"verdict"}
	except := expect.Properties["except"]
	except.Keys = &object{Enum: properties()}
	except.Values = &object{Type: typeObject, Required: []string{"outcome", "because"}, Values: &object{Not: &struct{}{}},
		Properties: map[string]*object{"outcome": {Type: "string"}, "because": {Type: "string"}}}
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

const typeObject = "object"

// object is a JSON Schema.
type object struct {
	Schema     string             `json:"$schema,omitempty"`
	Title      string             `json:"title,omitempty"`
	Doc        string             `json:"description,omitempty"`
	Type       any                `json:"type,omitempty"` // a name, or several
	Enum       []string           `json:"enum,omitempty"`
	Pattern    string             `json:"pattern,omitempty"`
	Minimum    *int               `json:"minimum,omitempty"`
	Items      *object            `json:"items,omitempty"`
	Properties map[string]*object `json:"properties,omitempty"`
	Values     *object            `json:"additionalProperties,omitempty"` // of keys that are not listed
	Not        *struct{}          `json:"not,omitempty"`                  // {}: nothing is allowed
	Keys       *object            `json:"propertyNames,omitempty"`
	Required   []string           `json:"required,omitempty"`
}

// at is the schema at a path, which it makes if necessary.
func (o *object) at(path string) *object {
	for name := range strings.SplitSeq(path, ".") {
		name, list := strings.CutSuffix(name, "[]")
		if o.Properties == nil {
			o.Properties = map[string]*object{}
		}
		if o.Properties[name] == nil {
			o.Properties[name] = &object{}
		}
		o = o.Properties[name]
		if list {
			if o.Items == nil || o.Items.Type != typeObject {
				o.Items = &object{Type: typeObject}
			}
			o = o.Items
		}
	}
	return o
}

// durationPattern matches the input of time.ParseDuration, without a sign.
const durationPattern = `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`

func (o *object) set(k Key) {
	o.Doc, o.Enum = k.Doc, k.Values
	scalar := []string{"string", "number", "boolean"} // YAML has types for 3 and true, and options are text
	switch k.Type {
	case typeBool:
		o.Type = "boolean"
	case typeNumber:
		o.Type, o.Minimum = "integer", new(int)
	case typeDuration:
		o.Type, o.Pattern = []string{"string", "integer"}, durationPattern
	case typeText:
		o.Type = "string"
	case typeList:
		o.Type, o.Items = "array", &object{Type: "string"}
	case typeSection:
		o.Type, o.Values = []string{typeObject, "null"}, &object{Type: scalar}
	}
}

// close refuses keys that are not listed, below o too.
func (o *object) close() {
	if o == nil {
		return
	}
	if len(o.Properties) > 0 {
		o.Values = &object{Not: &struct{}{}}
		o.Type = typeObject
	}
	for _, p := range o.Properties {
		p.close()
	}
	o.Items.close()
}

// reference is docs/reference/scenario-keys.md: a line for each key.
func reference() string {
	var b strings.Builder
	b.WriteString(referenceHead)
	section := "none yet"
	for _, k := range Keys() {
		prefix, name := "", k.Path
		if i := strings.LastIndexByte(k.Path, '.'); i >= 0 {
			prefix, name = k.Path[:i], k.Path[i+1:]
		}
		if prefix != section {
			section = prefix
			title := "The scenario"
			if prefix != "" {
				title = "`" + prefix + "`"
			}
			fmt.Fprintf(&b, "\n## %s\n\n| key | type | default | meaning |\n| --- | --- | --- | --- |\n", title)
		}
		doc := k.Doc
		if k.Few() {
			doc += ": " + strings.Join(k.Values, ", ")
		}
		fallback := k.Default
		if k.required {
			fallback = "required"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", name, k.Type, fallback, doc)
	}
	return b.String()
}

const referenceHead = `# Every key of a scenario

Generated from the program (` + "`chaos list keys`); a test keeps it current. " +
	"A duration has a unit, such as `500ms` or `2s`." + `
[schema/scenario.json](../schema/scenario.json) is the same as a JSON Schema: an editor with a YAML language server
completes and checks keys with this first line in a file:

    # yaml-language-server: $schema=docs/schema/scenario.json

How keys work together is described in [scenarios](scenarios.md); ` + "`chaos run --dry-run`" + ` checks a file.
`
