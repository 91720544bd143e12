// Package yamlpath sets values of a decoded YAML text by their paths: keys separated by dots, list entries by index,
// such as faults[0].target.
//
// Read [Set] first.
package yamlpath

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/internal/format"
)

// Set puts value at path in tree, which is changed. A missing section is added. The value nil removes a key, if
// it is there; a list entry becomes null.
func Set(tree map[string]any, path string, value any) error {
	_, err := set(tree, keysOf(path), 0, value)
	return err
}

// Alone is a tree that has value at path, as the only entry of each list, and nothing else.
func Alone(path string, value any) any {
	for _, key := range slices.Backward(keysOf(path)) {
		if name, ok := key.(string); ok {
			value = map[string]any{name: value}
		} else {
			value = []any{value}
		}
	}
	return value
}

// Within reports whether path is at or below other.
func Within(path, other string) bool {
	rest, ok := strings.CutPrefix(path, other)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// keysOf are the keys and indexes of a path: faults, 0 and fault of faults[0].fault.
func keysOf(path string) (keys []any) {
	for _, part := range strings.Split(strings.ReplaceAll(path, "[", ".["), ".") {
		if number, ok := strings.CutPrefix(part, "["); ok && strings.HasSuffix(number, "]") {
			if i, err := strconv.Atoi(strings.TrimSuffix(number, "]")); err == nil {
				keys = append(keys, i)
				continue
			}
		}
		keys = append(keys, part)
	}
	return keys
}

// set returns node, the value at keys[:at], with value at keys in it. A missing section is added.
func set(node any, keys []any, at int, value any) (_ any, err error) {
	if at == len(keys) {
		return value, nil
	}
	if node == nil && value == nil { // removed already
		return nil, nil
	}
	if node == nil {
		node = map[string]any{}
	}
	switch key := keys[at].(type) {
	case string:
		section, ok := node.(map[string]any)
		if _, list := node.([]any); list {
			return nil, fmt.Errorf("%s is a list: give an index, such as %[1]s[0]", pathTo(keys[:at]))
		} else if !ok {
			return nil, fmt.Errorf("%s is not a section", pathTo(keys[:at]))
		}
		if section[key], err = set(section[key], keys, at+1, value); section[key] == nil {
			delete(section, key)
		}
	case int:
		list, ok := node.([]any)
		switch {
		case !ok:
			return nil, fmt.Errorf("%s is not a list", pathTo(keys[:at]))
		case key < 0 || key >= len(list):
			return nil, fmt.Errorf("%s does not exist: the list has %s, counted from 0",
				pathTo(keys[:at+1]), format.Count(len(list), "entry"))
		}
		list[key], err = set(list[key], keys, at+1, value)
	}
	return node, err
}

// pathTo is the reverse of keysOf.
func pathTo(keys []any) string {
	var path strings.Builder
	for _, key := range keys {
		if i, ok := key.(int); ok {
			fmt.Fprintf(&path, "[%d]", i)
		} else {
			fmt.Fprintf(&path, ".%v", key)
		}
	}
	return cmp.Or(strings.TrimPrefix(path.String(), "."), `""`)
}
