package history

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/lockchaos/lockchaos/history/internal/edn"
)

// validate rejects values that no client can have sent or returned. (Wait may be negative: without limit. A lock that
// miscounts may reply with a negative count, which is for the checkers to judge.)
func (v *Value) validate() error {
	switch {
	case v == nil:
		return nil
	case v.Permits < 0:
		return negative("permits", int64(v.Permits))
	case v.Limit < 0:
		return negative("limit", int64(v.Limit))
	case v.Lease < 0:
		return negative("lease", int64(v.Lease))
	}
	return nil
}

func negative(name string, n int64) error {
	return fmt.Errorf("%s is %d: expected 0 or more", name, n)
}

// nonNegative parses an integer from 0.
func nonNegative(word string) (int, error) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("expected an integer from 0, got %q", word)
	}
	return int(n), nil
}

// integer parses an integer.
func integer(word string) (int64, error) {
	n, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("expected an integer, got %q", word)
	}
	return n, nil
}

// unsigned parses a fencing token.
func unsigned(word string) (uint64, error) {
	n, err := strconv.ParseUint(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("expected an integer from 0 to 2^64-1, got %q", word)
	}
	return n, nil
}

// jsonError replaces Go's types in an error of encoding/json by those of JSON.
func jsonError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	want := "an object"
	switch wrong.Type.Kind() {
	case reflect.Int, reflect.Int32, reflect.Int64:
		want = "a 64-bit integer"
	case reflect.Uint64:
		want = "an integer from 0 to 2^64-1"
	case reflect.String:
		want = "a string"
	case reflect.Bool:
		want = "true or false"
	case reflect.Slice:
		want = "an array"
	case reflect.Uint8: // Type
		want = "invoke, ok, fail or info"
	}
	if wrong.Field == "" {
		return &typeError{fmt.Sprintf("expected an event (a JSON object), got a JSON %s", wrong.Value), wrong}
	}
	name := strings.TrimPrefix(wrong.Field, "Event.")
	return &typeError{fmt.Sprintf("field %s: expected %s, got a JSON %s", name, want, wrong.Value), wrong}
}

// typeError is an UnmarshalTypeError with a text for people.
type typeError struct {
	text  string
	cause *json.UnmarshalTypeError
}

func (e *typeError) Error() string { return e.text }
func (e *typeError) Unwrap() error { return e.cause }

// duplicateKey returns a key that an object of a JSON line has twice; empty: none.
func duplicateKey(line []byte) string {
	forms := edn.NewJSON(bytes.NewReader(line))
	if _, err := forms.Next(); err != nil {
		return ""
	}
	return forms.Duplicate()
}

func duplicateText(name string) string {
	return fmt.Sprintf("field %q appears twice in one event; the last value was used", name)
}
