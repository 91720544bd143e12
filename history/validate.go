package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// jsonError replaces Go's types in an error of encoding/json by JSON's.
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
