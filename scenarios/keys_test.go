package scenarios

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lockchaos/lockchaos/internal/testkit/golden"
)

// TestEveryKeyHasItsText: the table and the types agree.
func TestEveryKeyHasItsText(t *testing.T) {
	keys := Keys()
	for _, k := range keys {
		if k.Doc == "" {
			t.Errorf("%s has no text", k.Path)
		}
	}
	for _, k := range keyDocs() {
		if !slices.ContainsFunc(keys, func(other Key) bool { return other.Path == k.Path }) {
			t.Errorf("%s is no key of a scenario", k.Path)
		}
	}
}

// TestReferenceIsCurrent: the page and the schema agree with the program; -update rewrites them.
func TestReferenceIsCurrent(t *testing.T) {
	schema, err := schemaText()
	if err != nil {
		t.Fatal(err)
	}
	golden.File(t, "../docs/reference/scenario-keys.md", reference())
	golden.File(t, "../docs/schema/scenario.json", string(schema))
}

// TestSchemaAcceptsAndRefuses: every scenario of the catalog is valid, and texts with a mistake that a schema can see
// are not.
func TestSchemaAcceptsAndRefuses(t *testing.T) {
	text, err := schemaText()
	if err != nil {
		t.Fatal(err)
	}
	schema := compiled(t, text)
	for _, name := range Names() {
		source, err := named(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := schema.Validate(asJSON(t, source)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for what, text := range map[string]string{
		"unknown key":            good("fualts: []\n"),
		"unknown fault":          good("faults: [{fault: kil}]\n"),
		"unknown trigger":        good("faults: [{fault: kill, when: granting}]\n"),
		"duration without unit":  good("workload: {hold: \"3\"}\n"),
		"number as text":         good("workload: {clients: many}\n"),
		"unknown property":       good("expect: {exclusive: holds}\n"),
		"unknown key of a step":  good("faults: [{fault: kill, at: 3s}]\n"),
		"unknown topology":       edited("sentinel", "sentinels"),
		"no topology":            edited("topology: {kind: sentinel}\n", ""),
		"unknown key of a drawn": drawn("of: [kill], each: 3s"),
	} {
		if err := schema.Validate(asJSON(t, []byte(text))); err == nil {
			t.Errorf("%s: accepted", what)
		}
	}
	if err := schema.Validate(asJSON(t, []byte(good("")))); err != nil {
		t.Errorf("the correct scenario: %v", err)
	}
}

func compiled(t *testing.T, text []byte) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("scenario.json", doc); err != nil {
		t.Fatal(err)
	}
	schema, err := c.Compile("scenario.json")
	if err != nil {
		t.Fatal(err)
	}
	return schema
}

// asJSON is YAML as a JSON value.
func asJSON(t *testing.T, source []byte) any {
	t.Helper()
	text, err := yaml.YAMLToJSON(source)
	if err != nil {
		t.Fatalf("%v\n%s", err, source)
	}
	v, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil || !json.Valid(text) {
		t.Fatal(err)
	}
	return v
}
