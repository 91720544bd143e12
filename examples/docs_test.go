package examples

import (
	"encoding/json"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/lockchaos/lockchaos/client"
	"github.com/lockchaos/lockchaos/history"
)

// page reads a page of the documentation.
func page(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile("../docs/reference/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// fields returns the JSON names of the fields of t and of the types in it.
func fields(t reflect.Type) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return nil
	}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous {
			names = append(names, fields(f.Type)...)
		}
		if name == "" || name == "-" {
			continue
		}
		names = append(append(names, name), fields(f.Type)...)
	}
	return names
}

// requestFields are all fields of a request: some are computed by its MarshalJSON.
func requestFields(t *testing.T) []string {
	t.Helper()
	line, err := json.Marshal(client.Request{
		Acquire: client.Acquire{Lease: time.Second, Wait: time.Second}, Work: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	var computed map[string]any
	if err := json.Unmarshal(line, &computed); err != nil {
		t.Fatal(err)
	}
	return slices.AppendSeq(fields(reflect.TypeFor[client.Request]()), maps.Keys(computed))
}

// TestPagesNameEveryField: every field of the protocol and the history is documented.
func TestPagesNameEveryField(t *testing.T) {
	for _, test := range []struct {
		page   string
		fields []string
	}{
		{"protocol.md", requestFields(t)}, {"protocol.md", fields(reflect.TypeFor[client.Reply]())},
		{"history.md", fields(reflect.TypeFor[history.Event]())}, {"history.md", fields(reflect.TypeFor[history.Sample]())},
	} {
		text := page(t, test.page)
		if len(test.fields) < 8 {
			t.Errorf("%s: only the fields %q", test.page, test.fields)
		}
		for _, field := range test.fields {
			if !strings.Contains(text, "`"+field+"`") && !strings.Contains(text, "."+field+"`") {
				t.Errorf("%s does not document %s", test.page, field)
			}
		}
	}
}

// TestPagesNameEveryWord: operations, phases and error codes are documented.
func TestPagesNameEveryWord(t *testing.T) {
	protocol, record := page(t, "protocol.md"), page(t, "history.md")
	for _, op := range []string{client.Init, history.Acquire, history.Try, history.Work, history.Renew, history.Release,
		client.Close, history.Lost, history.Renewed} {
		if !strings.Contains(protocol, "`"+op+"`") {
			t.Errorf("protocol.md does not document %s", op)
		}
	}
	for _, word := range []string{history.Acquire, history.Try, history.Work, history.Renew, history.Release,
		history.Touch, history.Lost, history.Renewed, history.Crash,
		"client-exited", "client-protocol", "client-timeout", "client-error",
		string(history.Injected), string(history.TookEffect), string(history.Healed), string(history.Noted)} {
		if !strings.Contains(record, "`"+word+"`") {
			t.Errorf("history.md does not document %s", word)
		}
	}
}

// TestExamplesInThePages: every JSON line in a page is valid and has only known fields.
func TestExamplesInThePages(t *testing.T) {
	lines := 0
	for _, name := range []string{"protocol.md", "history.md"} {
		for line := range strings.Lines(page(t, name)) {
			line = strings.TrimSpace(line)
			mark, text, marked := strings.Cut(line, " ")
			var into any
			switch {
			case marked && mark == ">":
				into = &client.Request{}
			case marked && mark == "<":
				into = &client.Reply{}
			case strings.HasPrefix(line, `{"event"`):
				into, text = &client.Reply{}, line
			case strings.HasPrefix(line, `{"index"`):
				into, text = &history.Event{}, line
			case strings.HasPrefix(line, `{"time"`):
				into, text = &history.Sample{}, line
			default:
				continue
			}
			lines++
			if _, ok := into.(*client.Request); ok { // its UnmarshalJSON ignores unknown fields
				into = &map[string]any{}
				checkFields(t, text, requestFields(t))
			}
			d := json.NewDecoder(strings.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(into); err != nil {
				t.Errorf("%s: %s: %v", name, text, err)
			}
		}
	}
	if lines < 15 {
		t.Errorf("found only %d lines of JSON", lines)
	}
}

func checkFields(t *testing.T, text string, known []string) {
	t.Helper()
	var line map[string]any
	if err := json.Unmarshal([]byte(text), &line); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	for field := range line {
		if !slices.Contains(known, field) {
			t.Errorf("%s: unknown field %s", text, field)
		}
	}
}
