package promise

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/lockchaos/lockchaos/internal/testkit/golden"
)

func TestCatalogHasARowForEachPromise(t *testing.T) {
	var all Set
	house := false
	for i, row := range Catalog() {
		if row.Set != 1<<i {
			t.Errorf("row %d is of %q, a constant of another place", i, row.Name)
		}
		if row.Meaning == "" || all.Has(row.Set) || house && !row.House {
			t.Errorf("%s: without a meaning, twice, or a portable promise behind a house one", row.Name)
		}
		if set, err := Parse(row.Name); err != nil || set != row.Set {
			t.Errorf("%s is parsed as %v, %v", row.Name, set, err)
		}
		for _, old := range row.Former {
			if _, err := Parse(old); err == nil && !slices.Contains(row.Ops, old) {
				t.Errorf("%s still exists beside %s", old, row.Name)
			}
		}
		all, house = all|row.Set, row.House
	}
	if all != All {
		t.Errorf("rows of %v", all)
	}
}

func TestSets(t *testing.T) {
	s := Try | Renew | Fair
	if !s.Has(Try|Fair) || s.Has(Try|Fenced) || !s.Any(Try|Fenced) || s.Any(Fenced|Wakes) || !s.Has(0) || s.Any(0) {
		t.Errorf("Has or Any of %v is wrong", s)
	}
	if got := s.With(Wakes).Without(Fair | Fenced); got != Try|Renew|Wakes || got.String() != "try, renew, wakes" {
		t.Errorf("got %v", got)
	}
	for _, test := range []struct {
		locks []Set
		want  Set
	}{{nil, 0}, {[]Set{s}, s}, {[]Set{s, Try | Wakes}, Try}, {[]Set{s, Try | Unleased}, Try | Unleased}} {
		if got := Common(test.locks...); got != test.want {
			t.Errorf("Common(%v) is %v, want %v", test.locks, got, test.want)
		}
	}
	if NeededFor("renew") != Renew || NeededFor("drop-permits") != ManagesPermits || NeededFor("acquire") != 0 {
		t.Error("an operation needs another promise")
	}
}

func TestSetsAreListsOfNames(t *testing.T) {
	var read struct{ Can Set }
	if err := json.Unmarshal([]byte(`{"Can":["renew","try"]}`), &read); err != nil || read.Can != Try|Renew {
		t.Errorf("read %v, %v", read.Can, err)
	}
	if text, err := json.Marshal(read); err != nil || string(text) != `{"Can":["try","renew"]}` {
		t.Errorf("written %s, %v", text, err)
	}
	if err := yaml.Unmarshal([]byte("can: [fair]"), &read); err != nil || read.Can != Fair {
		t.Errorf("read %v, %v", read.Can, err)
	}
	if err := json.Unmarshal([]byte(`{"Can":"try"}`), &read); err == nil {
		t.Error("a text was read as a list")
	}
}

func TestUnknownNamesAreErrors(t *testing.T) {
	for name, want := range map[string]string{
		"fencd":    `unknown promise "fencd" (did you mean fenced?)`,
		"persists": `unknown promise "persists" (did you mean retries-transient-errors?)`,
		"drain":    `unknown promise "drain" (did you mean manages-permits?)`,
		"levitate": `unknown promise "levitate"; docs/reference/protocol.md lists those that exist`,
		"":         `unknown promise ""; docs/reference/protocol.md lists those that exist`,
	} {
		text, _ := json.Marshal([]string{"try", name})
		var s Set
		err := json.Unmarshal(text, &s)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Name != name || err.Error() != want || s != 0 {
			t.Errorf("got %v and %v, want %s", s, err, want)
		}
	}
}

// TestProtocolTables: docs/reference/protocol.md has a row for each promise.
func TestProtocolTables(t *testing.T) {
	const begin = "<!-- promises: generated: go test ./promise -run TestProtocolTables -update -->\n"
	golden.Block(t, "../docs/reference/protocol.md", begin, "<!-- end -->", func(string) string {
		const head = "| promise | the lock | operations and fields |\n| --- | --- | --- |\n"
		text := head
		house := false
		for _, row := range Catalog() {
			if row.House && !house {
				house = true
				text += "\nHouse promises: the locks of this project state them, and no lock of another library does so far. " +
					"Any lock may.\n\n" + head
			}
			text += fmt.Sprintf("| `%s` | %s | %s |\n", row.Name, row.Meaning, row.wire())
		}
		return text
	})
}

// wire is a promise as a client sees it.
func (p Promise) wire() string {
	text := quoted(slices.Concat(p.Ops, p.Fields))
	if len(p.Replies) > 0 {
		text += " → " + quoted(p.Replies)
	}
	return strings.TrimSpace(text)
}

func quoted(words []string) string {
	var all []string
	for _, word := range words {
		all = append(all, "`"+word+"`")
	}
	return strings.Join(all, ", ")
}
