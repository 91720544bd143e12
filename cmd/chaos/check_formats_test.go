package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/lockchaos/lockchaos/internal/testkit/race"
)

// TestForeignVerdicts judges histories in the format of other suites under
// every reading that changes a verdict.
func TestForeignVerdicts(t *testing.T) {
	const never = "There were never two holders at once, but the history is not linearizable"
	const twice = "There were two holders at once."
	tests := []struct {
		file, flags string
		code        int
		message     []string // in the output
	}{
		{"etcd.edn", "", exitUnsafe, []string{never, "SAFE with --assume not-held-ends"}},
		{"etcd.edn", "--dialect etcd", exitSafe, []string{"UNSAFE without assumptions"}},
		{"etcd.edn", "--assume not-held-ends --property exclusion", exitSafe, nil},
		{"hazelcast.edn", "", exitUnsafe, []string{"got token 0", "SAFE with --assume zero-is-none"}},
		{"hazelcast.edn", "--dialect hazelcast", exitSafe, []string{"UNSAFE without assumptions"}},
		{"hazelcast.edn", "--assume zero-is-none --owner value.client", exitSafe, nil},
		{"atlasdb.json", "", exitUnsafe, []string{twice, "SAFE with --assume empty-is-fail --assume not-held-ends"}},
		{"atlasdb.json", "--dialect atlasdb", exitSafe, []string{"UNSAFE without assumptions"}},
		{"atlasdb-names.json", "--dialect atlasdb", exitSafe, []string{"4 grants, 2 of them contended"}},
		{"atlasdb-two-holders.json", "--dialect atlasdb", exitUnsafe, []string{twice, "client 2 and client 3 both held alice"}},
		{"atlasdb-refused.json", "--dialect atlasdb", exitSafe, []string{"5 grants, 2 of them contended"}},
		{"atlasdb.json", "--assume empty-is-fail", exitUnsafe, []string{never}},
		{"slow-release.edn", "", exitInconclusive, []string{"  wake-up          holds"}}, // perhaps a fault delayed it
		{"reused.json", "--time-unit ms", exitInconclusive, []string{"SAFE with --assume numbers-reused"}},
		{"reused.json", "--time-unit ms --assume numbers-reused", exitSafe, []string{"INCONCLUSIVE without assumptions"}},
		{"two-holders.edn", "", exitUnsafe, []string{twice}},
		{"tuples.edn", "", exitSafe, []string{"read with --key value.0", "UNSAFE if read as one lock (--key key)"}},
		{"tuples.edn", "--key key", exitUnsafe, []string{twice}},
		{"tuples-two-holders.edn", "", exitUnsafe, []string{"read with --key value.0", "client 0 and client 2 both held a"}},
		{"scalar-keys.edn", "", exitSafe, []string{"read with --key value.", "UNSAFE if read as one lock (--key key)"}},
		{"scalar-keys-two-holders.edn", "", exitUnsafe, []string{"client 0 and client 2 both held a"}},
		{"owners-in-values.edn", "", exitSafe, []string{"INCONCLUSIVE with --key value, one lock per value"}},
		{"owners-in-values-two-holders.edn", "", exitUnsafe, []string{twice}},
		{"owner-tuples.edn", "", exitUnsafe, []string{"INCONCLUSIVE with --key value.0, one lock per value"}},
		{"registers.edn", "", exitInconclusive, []string{"no operations on a lock", "named read, cas, write"}},
		{"tuples.edn", "--stream", exitUnsafe, []string{"read as those of one: use --key value.0"}},
		{"registers.edn", "--stream", exitInconclusive, []string{"named read, cas, write"}},
		{"history.txt", "", exitSafe, []string{"events without a time: 17"}},
		{"jepsen.log", "", exitUnsafe, []string{twice, "lines of the log that are not operations: 2"}},
	}
	for _, test := range tests {
		t.Run(test.file+" "+test.flags, func(t *testing.T) {
			args := append([]string{"check", filepath.Join("testdata/histories", test.file)}, strings.Fields(test.flags)...)
			code, out, errs := chaos(args...)
			t.Logf("exit %d: %s", code, strings.SplitN(out, "\n", 2)[0])
			if code != test.code {
				t.Errorf("exit %d, want %d\n%s%s", code, test.code, out, errs)
			}
			for _, text := range test.message {
				if !strings.Contains(out, text) {
					t.Errorf("%q is missing in\n%s", text, out)
				}
			}
		})
	}
}

func TestBadHistories(t *testing.T) {
	race.Skip(t)
	invoke := `{"index":0,"time":5,"type":"invoke","process":1,"f":"acquire","key":"k"}` + "\n"
	judgeBad(t, []badHistory{
		{"empty", "", "", exitInconclusive, "INCONCLUSIVE"},
		{"only spaces", " \n\n", "", exitInconclusive, "INCONCLUSIVE"},
		{"empty vector", "[]", "", exitInconclusive, "INCONCLUSIVE"},
		{"torn JSON line", invoke + invoke[:30], "", exitInconclusive, "line 2: last line torn after 30 bytes"},
		{"torn EDN", "{:type :invoke :process 1 :f :lock}\n{:type :o", "", exitInconclusive,
			"line 2: last event torn"},
		{"torn array", `[{"type":"invoke","process":1,"f":"lock"},{"ty`, "", exitInconclusive, "last event torn"},
		{"bad JSON line", invoke + "oops\n" + invoke, "", exitUsage, "FILE:2:1: invalid character 'o'"},
		{"bad JSON array", "[\n{\"type\":\"invoke\",\n\"f\" 1}]", "", exitUsage, "FILE:3:5: expected ':', got '1'"},
		{"bad EDN", "{:type :invoke\n :f }", "", exitUsage, "FILE:2:5: map has a key without a value"},
		{"no type", "{:f :acquire :process 1}", "", exitUsage, "FILE:1:1: event without \"type\""},
		{"no process", "\n {:f :acquire :type :ok}", "", exitUsage, "FILE:2:2: event without \"process\""},
		{"not a map", "[1 2]", "", exitUsage, "FILE:1:2: expected an event (a map with :type, :process and :f), got 1"},
		{"bad type", "{:f :acquire :process 1 :type :maybe}", "", exitUsage, `type "maybe": expected invoke, ok, fail or info`},
		{"bad time", `{:f :acquire :process 1 :type :ok :time "soon"}`, "", exitUsage, `:time: expected a number of ns since the start, got "soon"`},
		{"bad tabs", "0\t:invoke\t:acquire\tnil\nhello\n", "", exitUsage, `FILE:2: expected PROCESS, :TYPE, :OPERATION and VALUE`},
		{"bad value behind tabs", "0\t:invoke\t:acquire\t[1\n", "", exitUsage, `FILE:1:20: value "[1"`},
		{"completion alone", `{:f :release :process 1 :type :ok :time 1}`, "", exitInconclusive, "process 1 completes release without an invocation"},
		{"two open", `{:f :lock :process 1 :type :invoke :time 1} {:f :lock :process 1 :type :invoke :time 2}`, "", exitInconclusive,
			"process 1 invokes acquire while its operation of event 0 has no completion"},
		{"time decreases", `{:f :lock :process 1 :type :invoke :time 9} {:f :lock :process 1 :type :ok :time 2}`, "", exitInconclusive,
			"time decreases by 7 ns"},
		{"Jepsen's binary", "JEPSEN\x00\x01", "", exitUsage,
			"Jepsen's binary format (test.jepsen); use the history.edn or history.txt"},
		{"binary", "\x7fELF\x00", "", exitUsage, "it is binary, with a zero byte at offset 4"},
		{"compressed", "\x1f\x8b\x08", "", exitUsage, "decompress it first"},
		{"UTF-16", "\xff\xfe{\x00", "", exitUsage, "convert it to UTF-8"},
		{"no UTF-8 in EDN", "{:f \"\xff\"}", "", exitUsage, "is not UTF-8"},
		{"no UTF-8 in JSON", strings.Replace(invoke, "k\"", "k\xff\"", 1), "--format jsonl", exitUsage,
			"FILE:1:73: the text before this position is not UTF-8"},
		{"unpaired surrogate", strings.Replace(invoke, "k\"", `\ud800"`, 1), "", exitUsage,
			`FILE:1:76: \ud800 is an unpaired surrogate`},
		{"unpaired surrogate in an array", "[" + strings.Replace(invoke, "k\"", `\ud800"`, 1) + "]", "", exitUsage,
			`FILE:1:77: \ud800 is an unpaired surrogate`},
		{"unpaired second surrogate", strings.Replace(invoke, "}", `,"value":{"owner":"\udc00"}}`, 1), "", exitUsage,
			`is an unpaired surrogate`},
		{"no UTF-8 in tabs", "0\t:invoke\t:lock\t\"\xff\"\n", "", exitUsage, "FILE:1: line is not UTF-8"},
		{"no UTF-8 by hand", "client 0 acquire k\xff 1-2 ok", "", exitUsage, "FILE:1: line is not UTF-8"},
		{"prose", "Dear reader,", "", exitUsage, `it starts with "Dear reader,"; expected a history.jsonl`},
		{"deep EDN", strings.Repeat("{[", 1<<20), "", exitUsage, "nested more than 100 deep"},
		{"deep JSON", `{"a":` + strings.Repeat("[", 1<<20), "", exitUsage, "nested more than 100 deep"},
		{"endless line", `{"type":"` + strings.Repeat("x", 17<<20), "--format jsonl", exitUsage,
			"line exceeds 16 MiB"},
		{"endless map", `{:type "` + strings.Repeat("x", 17<<20), "", exitUsage, "form exceeds 16 MiB"},
		{"unknown format", "", "--format ednn", exitUsage, `--format: unknown value "ednn" (did you mean edn?)`},
		{"unknown dialect", "", "--dialect etcdd", exitUsage, `--dialect: unknown value "etcdd" (did you mean etcd?)`},
		{"unknown assumption", "", "--assume zero-is-nine", exitUsage, `--assume: unknown value "zero-is-nine" (did you mean zero-is-none?)`},
		{"unknown unit", "", "--time-unit h", exitUsage, `--time-unit: unit of time "h": expected ns, us, ms or s`},
	})
}

// TestBadEvents: single events with invalid values.
func TestBadEvents(t *testing.T) {
	invoke := `{"index":0,"time":5,"type":"invoke","process":1,"f":"acquire","key":"k"}` + "\n"
	judgeBad(t, []badHistory{
		{"negative limit", strings.Replace(invoke, "}", `,"value":{"limit":-4}}`, 1), "", exitUsage, "FILE:1: limit is -4: expected 0 or more"},
		{"negative permits in EDN", `{:f :acquire :process 1 :type :invoke :value {:permits -4}}`, "", exitUsage,
			"FILE:1:1: permits is -4: expected 0 or more"},
		{"negative limit by hand", "client 0 acquire k 1-2 ok limit=-4", "", exitUsage, `FILE:1: limit: expected an integer from 0, got "-4"`},
		{"negative clients by hand", "clients -2", "", exitUsage, `FILE:1: expected an integer from 0, got "-2"`},
		{"great JSON number", strings.Replace(invoke, "5", "1e400", 1), "", exitUsage,
			`FILE:1:23: field time: expected a 64-bit integer, got a JSON number 1e400`},
		{"great number in an array", "[" + strings.Replace(invoke, "5", "1e400", 1) + "]", "", exitUsage,
			`FILE:1:25: number "1e400" is out of range`},
		{"great number in EDN", "{:time 1e400}", "", exitUsage, `FILE:1:13: number "1e400" is out of range`},
		{"wrong kind", strings.Replace(invoke, "\"k\"", "7", 1), "", exitUsage, `field key: expected a string, got a JSON number`},
		{"a field twice", strings.Replace(invoke, "}", `,"key":"j"}`, 1), "", exitInconclusive, `line 1: field "key" appears twice in one event`},
		{"a field twice, with an escape", strings.Replace(invoke, "}", `,"key":"\u0041"}`, 1), "", exitInconclusive,
			`line 1: field "key" appears twice in one event`},
		{"a key twice in EDN", "{:f :lock :process 1 :type :invoke :value {:a 1 :a 2}}", "", exitInconclusive,
			`line 1: field "a" appears twice in one event`},
		{"a key twice in an array", `[{"f":"lock","process":1,"type":"invoke","f":"lock"}]`, "", exitInconclusive,
			`line 1: field "f" appears twice in one event`},
		{"torn map in the middle", "{:type :invoke :process 1 :f :lock}\n{:type :ok :process 1 :f :lock :val\n" +
			"{:type :invoke :process 2 :f :lock}\n{:type :ok :process 2 :f :lock}\n", "", exitInconclusive,
			"3 events, 2 operations"},
	})
}

// badHistory is a text and the output of chaos check about it.
type badHistory struct {
	name, text, flags string
	code              int
	message           string // on either stream; FILE is the path
}

func judgeBad(t *testing.T, tests []badHistory) {
	t.Helper()
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "h")
			if err := os.WriteFile(path, []byte(test.text), 0o600); err != nil {
				t.Fatal(err)
			}
			code, out, errs := chaos(append([]string{"check", path}, strings.Fields(test.flags)...)...)
			text := strings.ReplaceAll(out+errs, path, "FILE")
			if code != test.code || !strings.Contains(text, test.message) {
				t.Errorf("exit %d, want %d and %q in\n%s", code, test.code, test.message, text)
			}
		})
	}
}

func TestDirectories(t *testing.T) {
	dir := t.TempDir()
	if code, _, errs := chaos("check", dir); code != exitUsage || errs == "" {
		t.Errorf("an empty directory: exit %d, %s", code, errs)
	}
	text, err := os.ReadFile("testdata/histories/two-holders.edn")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "history.edn"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, errs := chaos("check", dir); code != exitUnsafe {
		t.Errorf("a run of Jepsen: exit %d\n%s%s", code, out, errs)
	}
}

func TestCheckExplainsAndPrintsJSON(t *testing.T) {
	code, out, errs := chaos("check", "testdata/histories/etcd.edn", "--explain", "--json")
	if code != exitUnsafe || !strings.Contains(errs, "read as edn: starts with a comment or tag of EDN") ||
		!strings.Contains(errs, "not-held-ends: not assumed (strictly: "+
			"a failed operation had no effect, so the lock is still held); 1 event affected") {
		t.Errorf("exit %d, explained:\n%s", code, errs)
	}
	var got struct {
		Verdict, Format string
		Others          []struct {
			Assumed []string
			Verdict string
		} `json:"other_readings"`
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	if is := fmt.Sprint(got); is != "{unsafe edn [{[not-held-ends] safe}]}" {
		t.Errorf("JSON: %s", is)
	}
}

// TestCheckPrintsAnOverlapOnce: three properties are violated by the same two holds. The overlap is in the headline and
// once in the list; the table has numbers.
func TestCheckPrintsAnOverlapOnce(t *testing.T) {
	_, out, _ := chaos("check", "testdata/histories/two-holders.edn")
	list := regexp.MustCompile(`(?m)^  exclusion(, [a-z-]+)*, linearizable, events \[`)
	if n := strings.Count(out, "both held"); n != 2 || !list.MatchString(out) ||
		!regexp.MustCompile(`(?m)^  exclusion +violated +1 violation$`).MatchString(out) {
		t.Errorf("the overlap is printed %d times:\n%s", n, out)
	}
}

// TestConvert: a converted history is judged as the original.
func TestConvert(t *testing.T) {
	dir := t.TempDir()
	for _, test := range []struct {
		file, dialect string
		code          int
	}{{"etcd.edn", "strict", exitUnsafe}, {"etcd.edn", "etcd", exitSafe}, {"hazelcast.edn", "strict", exitUnsafe},
		{"atlasdb.json", "atlasdb", exitSafe}, {"history.txt", "strict", exitSafe}} {
		first := filepath.Join(dir, "first")
		source := filepath.Join("testdata/histories", test.file)
		args := []string{"convert", source, "--dialect", test.dialect, "--to", "jsonl", "--out", first}
		if code, _, errs := chaos(args...); code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		second := filepath.Join(dir, "second")
		if code, _, errs := chaos("convert", first, "--to", "edn", "--out", second); code != 0 {
			t.Fatalf("exit %d: %s", code, errs)
		}
		for _, path := range []string{first, second} {
			if code, out, errs := chaos("check", path); code != test.code {
				t.Errorf("%s as %s, converted to %s: exit %d, want %d\n%s%s",
					test.file, test.dialect, filepath.Base(path), code, test.code, out, errs)
			}
		}
		code, out, _ := chaos("convert", second, "--to", "jsonl")
		want, err := os.ReadFile(first)
		if err != nil || code != 0 {
			t.Fatal(err, code)
		}
		if diff := cmp.Diff(string(want), out); diff != "" {
			t.Errorf("%s: JSON lines, and again by way of EDN (-want +got):\n%s", test.file, diff)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 2 {
		t.Errorf("left behind: %v %v", left, err)
	}
	for _, bad := range []string{"", "--to xml", "--to edn --out " + dir + "/no/such", "--to edn --format nothing"} {
		args := append([]string{"convert", "testdata/histories/etcd.edn"}, strings.Fields(bad)...)
		if code, _, errs := chaos(args...); code == 0 || errs == "" {
			t.Errorf("convert %s: exit %d", bad, code)
		}
	}
}
