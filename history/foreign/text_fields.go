package foreign

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// textFields says, by name, where the values of fields NAME=VALUE of the text format go: a pointer, or a function that
// takes the value. A *bool becomes true without a value.
type textFields map[string]any

// set stores the value of one field, if its name is known.
func (all textFields) set(name, value string) (known bool, err error) {
	switch into := all[name].(type) {
	case *string:
		*into = value
	case *bool:
		*into = true
	case *int:
		*into, err = nonNegative(value)
	case *int64:
		*into, err = integer(value)
	case *uint64:
		*into, err = unsigned(value)
	case *time.Duration:
		*into, err = textTime(value)
	case func(string):
		into(value)
	case func(string) error:
		err = into(value)
	default:
		return false, nil
	}
	return true, err
}

// setAll stores the values of fields of something, which an error names with its fields.
func (all textFields) setAll(fields []string, of string) error {
	for _, field := range fields {
		name, value, _ := strings.Cut(field, "=")
		known, err := all.set(name, value)
		if !known {
			err = fmt.Errorf("unknown field %q of %s", name, of)
		}
		if err != nil {
			return err
		}
	}
	return nil
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
