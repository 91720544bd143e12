package yamlpath

import (
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/google/go-cmp/cmp"
)

func TestSet(t *testing.T) {
	for _, tt := range []struct {
		path  string
		value any
		want  string // the text, or the error
	}{
		{"a", 2, "{a: 2, list: [{b: 1}, 3]}"},
		{"a", nil, "{list: [{b: 1}, 3]}"},
		{"new.section", true, "{a: 1, new: {section: true}, list: [{b: 1}, 3]}"},
		{"list[0].b", nil, "{a: 1, list: [{}, 3]}"},
		{"new.section", nil, "{a: 1, list: [{b: 1}, 3]}"},
		{"new.list[0]", nil, "{a: 1, list: [{b: 1}, 3]}"},
		{"list[1]", "x", "{a: 1, list: [{b: 1}, x]}"},
		{"list[2]", 1, "list[2] does not exist: the list has 2 entries, counted from 0"},
		{"list.b", 1, "list is a list: give an index, such as list[0]"},
		{"a.b", 1, "a is not a section"},
		{"a[0]", 1, "a is not a list"},
	} {
		var tree, want map[string]any
		if err := yaml.Unmarshal([]byte("{a: 1, list: [{b: 1}, 3]}"), &tree); err != nil {
			t.Fatal(err)
		}
		if err := Set(tree, tt.path, tt.value); err != nil {
			if err.Error() != tt.want {
				t.Errorf("%s: %v, want %s", tt.path, err, tt.want)
			}
			continue
		}
		text, err := yaml.Marshal(tree)
		if err != nil {
			t.Fatal(err)
		}
		var got map[string]any
		if yaml.Unmarshal(text, &got) != nil || yaml.Unmarshal([]byte(tt.want), &want) != nil {
			t.Fatalf("%s: %s", tt.path, text)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.path, diff)
		}
	}
}

func TestAlone(t *testing.T) {
	want := map[string]any{"a": []any{map[string]any{"b": nil}}}
	if diff := cmp.Diff(want, Alone("a[3].b", nil)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestWithin(t *testing.T) {
	for _, tt := range []struct {
		path, other string
		want        bool
	}{
		{"a.b", "a", true}, {"a[0]", "a", true}, {"a", "a", true}, {"ab", "a", false}, {"a", "a.b", false},
	} {
		if Within(tt.path, tt.other) != tt.want {
			t.Errorf("%s in %s: want %v", tt.path, tt.other, tt.want)
		}
	}
}
