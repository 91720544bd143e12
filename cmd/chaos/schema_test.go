package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/lockchaos/lockchaos/internal/clientcheck"
	"github.com/lockchaos/lockchaos/internal/evaluation"
	"github.com/lockchaos/lockchaos/internal/ledger"
	"github.com/lockchaos/lockchaos/internal/listing"
	"github.com/lockchaos/lockchaos/internal/machine"
	"github.com/lockchaos/lockchaos/internal/rundir"
	"github.com/lockchaos/lockchaos/internal/suite"
	"github.com/lockchaos/lockchaos/internal/testkit/golden"
	"github.com/lockchaos/lockchaos/internal/testkit/race"
	"github.com/lockchaos/lockchaos/reports/export"
)

const schemaDir = "../../docs/schema"

// outputs are the values with a schema in docs/schema, by the name of its file.
func outputs() map[string]struct {
	value any
	title string
} {
	return map[string]struct {
		value any
		title string
	}{
		"run":         {rundir.Manifest{}, "run.json of a run directory"},
		"verdict":     {rundir.Verdict{}, "verdict.json of a run directory"},
		"summary":     {export.Summary{}, "chaos run, replay and report --format json"},
		"check":       {judged{}, "chaos check --json"},
		"explore":     {explored{}, "chaos explore --json"},
		"shrink":      {shrunk{}, "chaos shrink --json"},
		"test":        {evaluation.Report{}, "test.json, and chaos test --json"},
		"suite":       {suite.Suite{}, "suite.json, and chaos suite --json"},
		"suite-row":   {suite.Record{}, "a line of history/suite.jsonl, which chaos index keeps"},
		"index":       {[]suite.Trend{}, "chaos index --json"},
		"diff-runs":   {export.RunDiff{}, "chaos diff --json of two runs"},
		"diff-suites": {[]suite.Change{}, "chaos diff --json of two suites"},
		"diff-tests":  {evaluation.Difference{}, "chaos diff --json of two tests"},
		"list":        {[]item{}, "chaos list --json of any list but scenarios"},
		"scenarios":   {[]listing.Item{}, "chaos list scenarios --json"},
		"doctor":      {[]machine.Diagnosis{}, "chaos doctor --json"},
		"doctor-lock": {[]clientcheck.Finding{}, "chaos doctor --lock --json"},
		"adapters":    {[]adapterItem{}, "chaos adapters list --json"},
		"clean":       {ledger.Report{}, "chaos clean --json"},
	}
}

// TestSchemasAreCurrent: docs/schema agrees with the types, and docs/reference/json.md names each file.
func TestSchemasAreCurrent(t *testing.T) {
	race.Skip(t)
	page, err := os.ReadFile("../../docs/reference/json.md")
	if err != nil {
		t.Fatal(err)
	}
	for name, o := range outputs() {
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		e.SetIndent("", " ")
		if err := e.Encode(schemaOf(t, o.value, o.title, false)); err != nil {
			t.Fatal(err)
		}
		golden.File(t, filepath.Join(schemaDir, name+".json"), want.String())
		if !strings.Contains(string(page), "(../schema/"+name+".json)") {
			t.Errorf("docs/reference/json.md does not link to ../schema/%s.json", name)
		}
	}
}

// validate checks that a real output fits its schema, and that it has no field that the schema lacks.
func validate(t *testing.T, name string, output []byte) {
	t.Helper()
	o := outputs()[name]
	text, err := json.Marshal(schemaOf(t, o.value, o.title, true))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for url, text := range map[string][]byte{"strict.json": text, "published.json": fileText(t, filepath.Join(schemaDir,
		name+".json"))} {
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(url, doc); err != nil {
			t.Fatal(err)
		}
		schema, err := c.Compile(url)
		if err != nil {
			t.Fatal(err)
		}
		value, err := jsonschema.UnmarshalJSON(bytes.NewReader(output))
		if err != nil {
			t.Fatalf("%s: %v in\n%.300s", name, err, output)
		}
		if err := schema.Validate(value); err != nil {
			t.Errorf("%s does not fit its schema: %v\n%.600s", name, err, output)
		}
	}
}

func fileText(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestOutputsFitTheirSchemas runs every command that has --json, and validates its output and the files of a run.
func TestOutputsFitTheirSchemas(t *testing.T) {
	race.Skip(t)
	t.Parallel()
	out := t.TempDir()
	output := func(name string, args ...string) {
		t.Helper()
		code, stdout, stderr := chaos(args...)
		if stdout == "" {
			t.Fatalf("%v: exit code %d and no output\n%s", args, code, stderr)
		}
		validate(t, name, []byte(stdout))
	}
	sim := []string{"--scenario", "failover", "--backend", "sim", "--out", out}
	output("summary", append([]string{"run", "--seed", "7", "--json"}, sim...)...)
	dirs, err := filepath.Glob(filepath.Join(out, "failover", "*-7"))
	if err != nil || len(dirs) != 1 {
		t.Fatalf("run directories %v, %v", dirs, err)
	}
	dir := dirs[0]
	validate(t, "run", fileText(t, filepath.Join(dir, rundir.ManifestFile)))
	validate(t, "verdict", fileText(t, filepath.Join(dir, rundir.VerdictFile)))
	output("summary", "report", dir, "--format", "json")
	output("check", "check", dir, "--json")
	output("check", "check", "testdata/histories/etcd.edn", "--json")
	output("check", "check", "testdata/histories/two-holders.edn", "--json", "--stream")
	output("explore", "explore", "--seeds", "2", "--json", "--scenario", "failover", "--out", out)
	output("shrink", "shrink", dir, "--json")
	output("test", "test", "--lock", "set-nx-ex", "--backend", "sim", "--fail-fast", "--out", filepath.Join(out, "test"),
		"--json")
	output("diff-runs", "diff", dir, dir, "--json")
	first, second := filepath.Join(out, "first"), filepath.Join(out, "second")
	for _, where := range []string{first, second} {
		output("suite", "suite", "failover", "--backend", "sim", "--out", where, "--json")
	}
	validate(t, "suite", fileText(t, filepath.Join(first, suite.JSONFile)))
	output("diff-suites", "diff", first, second, "--json")
	folder := filepath.Join(out, "nights")
	output("index", "index", folder, "--add", first, "--json")
	for line := range bytes.Lines(fileText(t, filepath.Join(folder, suite.HistoryFile))) {
		validate(t, "suite-row", line)
	}
	output("list", "list", "locks", "--json")
	output("scenarios", "list", "scenarios", "--all", "--json")
	output("doctor", "doctor", "--json")
	output("adapters", "adapters", "list", "--json")
}

func TestOutputOfCleanFitsItsSchema(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir()) // without leftovers of other tests
	_, stdout, stderr := chaos("clean", "--json")
	if stdout == "" {
		t.Fatal(stderr)
	}
	validate(t, "clean", []byte(stdout))
}
