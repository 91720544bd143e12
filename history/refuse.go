package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// sensible refuses what nobody can have asked or answered, of what is judged. (A
// wait below 0 is for ever to some.)
func (v *Value) sensible() error {
	switch {
	case v == nil:
		return nil
	case v.Permits < 0:
		return negative("permits", int64(v.Permits))
	case v.Limit < 0:
		return negative("limit", int64(v.Limit))
	case v.Count < 0:
		return negative("count", int64(v.Count))
	case v.Lease < 0:
		return negative("lease", int64(v.Lease))
	}
	return nil
}

func negative(name string, n int64) error {
	return fmt.Errorf("%s is %d: it cannot be negative", name, n)
}

// wholeNumber reads a number from 0 on, as people write it.
func wholeNumber(word string) (int, error) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%q: a whole number from 0 on is wanted here", word)
	}
	return int(n), nil
}

// integer reads a number that may be negative.
func integer(word string) (int64, error) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: a whole number is wanted here", word)
	}
	return n, nil
}

// unsigned reads a fencing number.
func unsigned(word string) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%q: a whole number from 0 on is wanted here", word)
	}
	return n, nil
}

// plainly says what encoding/json stumbled at, without the names of Go's types.
func plainly(err error) error {
	var kind *json.UnmarshalTypeError
	if !errors.As(err, &kind) {
		return err
	}
	want := "an object"
	switch kind.Type.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		want = "a whole number that fits into 64 bits"
	case reflect.Uint64:
		want = "a whole number from 0 on that fits into 64 bits"
	case reflect.String:
		want = "a text"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "a list"
	case reflect.Uint8: // Type, which is a word
		want = "invoke, ok, fail or info"
	}
	if kind.Field == "" {
		return &kindError{fmt.Sprintf("an event is an object, not a JSON %s", kind.Value), kind}
	}
	name := strings.TrimPrefix(kind.Field, "Event.")
	return &kindError{fmt.Sprintf("%q is a JSON %s: want %s", name, kind.Value, want), kind}
}

// kindError is an UnmarshalTypeError in words for people.
type kindError struct {
	text  string
	cause *json.UnmarshalTypeError
}

func (e *kindError) Error() string { return e.text }
func (e *kindError) Unwrap() error { return e.cause }

// twice is a name that stands twice in one of the objects of a line of JSON; empty if none does.
func twice(line []byte) string {
	forms := edn.NewJSON(strings.NewReader(string(line)))
	if _, err := forms.Next(); err != nil {
		return ""
	}
	return forms.Twice()
}

// twiceText is the note about such a name.
func twiceText(name string) string {
	return fmt.Sprintf("%q stands twice in one event; the last was read", name)
}
