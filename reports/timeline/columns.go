package timeline

import (
	"bytes"
	"compress/gzip"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
)

// column is a column of numbers in the data of the page.
type column []int64

// MarshalJSON writes the numbers; encoding/json alone takes five times as long.
func (c column) MarshalJSON() ([]byte, error) { return jsonNumbers(c, strconv.AppendInt), nil }

func jsonNumbers[T any](all []T, add func([]byte, T, int) []byte) []byte {
	b := append(make([]byte, 0, 4*len(all)+2), '[')
	for i, n := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = add(b, n, 10)
	}
	return append(b, ']')
}

// deltas is a column of numbers that grow slowly: each is written as its difference to the one before.
type deltas []int64

// MarshalJSON writes the differences.
func (d deltas) MarshalJSON() ([]byte, error) {
	c := make(column, len(d))
	last := int64(0)
	for i, n := range d {
		c[i], last = n-last, n
	}
	return c.MarshalJSON()
}

// tokens is a column of fencing tokens.
type tokens []uint64

// MarshalJSON writes tokens as numbers, or as strings if they are too large for a number of JavaScript.
func (c tokens) MarshalJSON() ([]byte, error) {
	return jsonNumbers(c, func(b []byte, n uint64, base int) []byte {
		if n <= 1<<53 {
			return strconv.AppendUint(b, n, base)
		}
		return append(strconv.AppendUint(append(b, '"'), n, base), '"')
	}), nil
}

// names numbers texts in the order of their first use.
type names struct {
	list  []string
	index map[string]int
}

func (n *names) of(text string) int64 {
	i, ok := n.index[text]
	if !ok {
		if n.index == nil {
			n.index = map[string]int{}
		}
		i = len(n.list)
		n.list, n.index[text] = append(n.list, text), i
	}
	return int64(i)
}

// packed is v as JSON, compressed with gzip, in base64, for the script of the page.
func packed(v any) (string, error) {
	text, err := json.Marshal(v)
	if err != nil {
		return "", fmt.Errorf("encoding the data of the page: %w", err)
	}
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write(text); err != nil {
		return "", fmt.Errorf("compressing the data of the page: %w", err)
	}
	if err := z.Close(); err != nil {
		return "", fmt.Errorf("compressing the data of the page: %w", err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes()), nil
}
