package lock

import "fmt"

// codeOK is the code of a script that did what was requested. A negative code says why it did not.
const codeOK = 1

// reply is what a script returned.
type reply struct {
	code  int64
	value int64 // of a lone integer
	list  []any // of a list, without its code; nil: the reply is a lone integer
}

// decodeReply reads the reply of any script. A code that is not negative comes with at least n integers. A
// reply that cannot be read leaves the outcome of its request unknown.
func decodeReply(raw any, n int) (reply, error) {
	r := reply{code: codeOK}
	switch v := raw.(type) {
	case int64:
		r.value = v
		if v < 0 {
			r.code = v
		}
		if n <= 1 || v < 0 {
			return r, nil
		}
	case []any:
		if len(v) == 0 {
			break
		}
		code, ok := v[0].(int64)
		r.code, r.list = code, v[1:]
		if ok && (code < 0 || r.integers(n)) {
			return r, nil
		}
	}
	return reply{}, &wireError{outcome: unknown, err: fmt.Errorf("malformed reply %v, want a code and %d integers", raw, n)}
}

// integers reports whether the first n values are integers.
func (r reply) integers(n int) bool {
	if len(r.list) < n {
		return false
	}
	for _, v := range r.list[:n] {
		if _, ok := v.(int64); !ok {
			return false
		}
	}
	return true
}

// int is value i; 0: the reply has no such integer.
func (r reply) int(i int) int64 {
	if r.list == nil && i == 0 {
		return r.value
	}
	if i >= len(r.list) {
		return 0
	}
	n, _ := r.list[i].(int64)
	return n
}

// text is value i as a text; empty: the reply has none.
func (r reply) text(i int) string {
	if i >= len(r.list) {
		return ""
	}
	s, _ := r.list[i].(string)
	return s
}
